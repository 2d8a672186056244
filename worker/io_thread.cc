#include "worker/io_thread.h"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace isthmus::worker {
namespace {

constexpr std::size_t kCommands = 4096;
constexpr int kMessagesATurn = 64;  // Of one shard, before the others and the inbox are looked at again.

core::TimePoint now() { return core::SystemClock().now(); }

}  // namespace

IoThread::IoThread(SessionOptions session)
    : inbox_(std::make_shared<Inbox>(kCommands)),
      session_(std::move(session), [this](std::uint32_t shard, proto::Message&& message) {
        return sockets_[shard]->send(std::move(message));
      }) {}

Result<std::unique_ptr<IoThread>> IoThread::start(std::span<const ShardAddress> shards,
                                                  SessionOptions session,
                                                  const transport::SocketOptions& socket) {
  std::unique_ptr<IoThread> io(new IoThread(std::move(session)));
  for (const ShardAddress& shard : shards) {
    auto dealer = transport::Socket::dealer(io->context_, shard.address, socket);
    if (!dealer.ok()) return std::move(dealer).status().with_context(shard.name);
    io->polled_.push_back(dealer->get());
    io->sockets_.push_back(std::move(*dealer));
  }
  io->thread_ = std::jthread([io = io.get()](const std::stop_token& stop) { io->run(stop); });
  return io;
}

IoThread::~IoThread() {
  thread_.request_stop();
  inbox_->wake();
  if (thread_.joinable()) thread_.join();
}

void IoThread::submit(const OperationPtr& operation) {
  Command command = Submit{operation};
  if (!inbox_->try_push(command))
    operation->end({ErrorCode::kResourceExhausted, "too many operations at once; wait() for some first"});
}

void IoThread::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      turn();
    } catch (const std::exception& error) {
      session_.end({ErrorCode::kInternal, "the client's I/O thread: " + std::string(error.what())});
    }
  }
  session_.end({ErrorCode::kCancelled, "the client is being destroyed"});
  while (auto command = inbox_->try_pop()) obey(std::move(*command));
}

void IoThread::turn() {
  transport::wait(polled_, inbox_->fd(), session_.wake_at() - now());
  inbox_->clear_wake();
  while (auto command = inbox_->try_pop()) obey(std::move(*command));
  for (std::uint32_t shard = 0; shard < sockets_.size(); ++shard) read(shard);
  session_.tick(now());
}

void IoThread::obey(Command&& command) {
  if (auto* submit = std::get_if<Submit>(&command)) session_.submit(std::move(submit->operation), now());
  if (auto* cancel = std::get_if<Cancel>(&command)) session_.cancel(cancel->operation.lock());
  if (auto* decoded = std::get_if<Decoded>(&command)) session_.hold(decoded->slices);
}

void IoThread::read(std::uint32_t shard) {
  for (int i = 0; i < kMessagesATurn; ++i) {
    auto received = sockets_[shard]->receive();
    if (!received.ok()) {
      session_.on_bad_message(shard, received.status());
    } else if (*received) {
      session_.on_message(shard, std::move((*received)->message), now());
    } else {
      return;
    }
  }
}

}  // namespace isthmus::worker
