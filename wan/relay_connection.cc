#include "wan/relay_connection.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <tuple>
#include <utility>
#include <vector>

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// The addresses of a target. Numbers need no resolver.
asio::awaitable<std::vector<Tcp::endpoint>> resolve(core::Address target, error_code& error) {
  const auto address = asio::ip::make_address(target.host, error);
  if (!error) co_return std::vector{Tcp::endpoint(address, target.port)};
  Tcp::resolver resolver(co_await asio::this_coro::executor);
  auto [failed, found] = co_await resolver.async_resolve(target.host, std::to_string(target.port), kAwait);
  error = failed;
  std::vector<Tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  co_return endpoints;
}

void set_options(Tcp::socket& socket) {
  error_code ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
}

}  // namespace

RelayConnection::RelayConnection(Socket client, RelayShared& shared)
    : shared_(shared),
      client_(std::move(client)),
      target_(client_.get_executor()),
      channels_{Channel(client_.get_executor()), Channel(client_.get_executor())} {}

void RelayConnection::start(const core::Address& target) { spawn(run(target)); }

void RelayConnection::close(bool reset) {
  if (!open_) return;
  open_ = false;
  error_code ignored;
  for (Socket* socket : {&client_, &target_}) {
    if (reset) socket->set_option(asio::socket_base::linger(true, 0), ignored);
    socket->close(ignored);
  }
  for (const Way way : kBothWays) {
    Channel& to = channels_[way];
    shared_.unwritten_bytes[way] -= std::exchange(to.unwritten_bytes, 0);
    to.arrived.clear();
    to.gate.cancel();
  }
  shared_.closed(*this);
}

void RelayConnection::arrived(Way way, Piece piece) {
  if (!open_) return;
  Channel& to = channels_[way];
  to.unwritten_bytes += piece.bytes.size();
  shared_.unwritten_bytes[way] += piece.bytes.size();
  to.arrived.push_back(std::move(piece));
  if (std::exchange(to.writing, true)) return;
  spawn(write(way));
}

void RelayConnection::may_send(Way way) {
  channels_[way].in_line = false;
  channels_[way].gate.cancel();
}

// The connection lives while one of these runs, and ends if one throws (memory, for example).
void RelayConnection::spawn(asio::awaitable<void> work) {
  asio::co_spawn(client_.get_executor(), std::move(work),
                 [self = shared_from_this()](const std::exception_ptr& thrown) {
                   if (thrown) self->close(true);
                 });
}

asio::awaitable<void> RelayConnection::run(core::Address target) {
  set_options(client_);
  Status status = co_await connect(target);
  if (!open_) co_return;
  if (!status.ok()) {
    shared_.failed(status);
    close(true);
    co_return;
  }
  set_options(target_);
  spawn(read(Way::kThere));
  spawn(read(Way::kBack));
}

asio::awaitable<Status> RelayConnection::connect(const core::Address& target) {
  error_code error;
  const std::vector<Tcp::endpoint> endpoints = co_await resolve(target, error);
  for (const Tcp::endpoint& endpoint : endpoints) {
    if (!open_) break;
    error_code ignored;
    target_.close(ignored);
    if (target_.open(endpoint.protocol(), error)) continue;
    // Before connecting, since the window's scale is agreed on then.
    target_.set_option(asio::socket_base::receive_buffer_size(shared_.kernel_buffer_bytes), ignored);
    target_.set_option(asio::socket_base::send_buffer_size(shared_.kernel_buffer_bytes), ignored);
    std::tie(error) = co_await target_.async_connect(endpoint, kAwait);
    if (!error) co_return Status();
  }
  co_return Status(ErrorCode::kUnavailable, "connect to " + target.to_string() + ": " + error.message());
}

asio::awaitable<void> RelayConnection::read(Way way) {
  Socket& from = source(way);
  std::vector<std::byte> buffer;
  for (;;) {
    // Room is asked for only when there is something to send, so whoever has its turn uses it.
    auto [closed] = co_await from.async_wait(Tcp::socket::wait_read, kAwait);
    if (closed || !open_) co_return;
    const std::size_t bytes = co_await room(way);
    if (bytes == 0) co_return;
    buffer.resize(std::max(buffer.size(), bytes));

    error_code error;
    const std::size_t got = from.read_some(asio::buffer(buffer.data(), bytes), error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      shared_.link.pass_on(way);
      continue;
    }
    Piece piece;
    if (error) piece.kind = error == asio::error::eof ? Piece::Kind::kEnd : Piece::Kind::kReset;
    piece.bytes.assign(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(got));
    shared_.link.send(way, shared_from_this(), std::move(piece));
    if (error) co_return;
  }
}

// Waits until some bytes may be sent; 0 when the connection is closed.
asio::awaitable<std::size_t> RelayConnection::room(Way way) {
  Channel& from = channels_[way];
  while (open_) {
    const bool receiver_is_slow = from.unwritten_bytes >= kMaxUnwrittenBytes;
    if (!receiver_is_slow) {
      if (const std::size_t bytes = shared_.link.room(way)) co_return bytes;
      if (!std::exchange(from.in_line, true)) shared_.link.wait_for_room(way, weak_from_this());
    } else {
      shared_.link.pass_on(way);
    }
    from.gate.expires_at(asio::steady_timer::time_point::max());
    co_await from.gate.async_wait(kAwait);
  }
  shared_.link.pass_on(way);
  co_return 0;
}

asio::awaitable<void> RelayConnection::write(Way way) {
  Channel& to = channels_[way];
  while (open_ && !to.arrived.empty()) {
    const Piece piece = std::move(to.arrived.front());
    to.arrived.pop_front();
    switch (piece.kind) {
      case Piece::Kind::kData: co_await write_bytes(way, piece); break;
      case Piece::Kind::kEnd: end(way); break;
      case Piece::Kind::kReset: close(true); break;
    }
  }
  to.writing = false;
}

asio::awaitable<void> RelayConnection::write_bytes(Way way, const Piece& piece) {
  auto [error, written] = co_await asio::async_write(sink(way), asio::buffer(piece.bytes), kAwait);
  shared_.delivered_bytes[way] += written;
  if (!open_) co_return;
  if (error) {
    close(true);
    co_return;
  }
  shared_.unwritten_bytes[way] -= piece.bytes.size();
  channels_[way].unwritten_bytes -= piece.bytes.size();
  channels_[way].gate.cancel();
}

void RelayConnection::end(Way way) {
  error_code ignored;
  sink(way).shutdown(Tcp::socket::shutdown_send, ignored);
  channels_[way].ended = true;
  if (channels_[opposite(way)].ended) close(false);
}

}  // namespace isthmus::wan
