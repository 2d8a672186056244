#include "wan/relay.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <thread>
#include <unordered_map>
#include <utility>

#include "wan/bandwidth_trace.h"
#include "wan/emulated_link.h"
#include "wan/relay_connection.h"
#include "wan/shaped_link.h"

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// What the kernel holds comes on top of the queue, so it must not dwarf it.
constexpr std::uint64_t kMinKernelBytes = 32 * 1024;
constexpr std::uint64_t kMaxKernelBytes = 256 * 1024;

// How long to leave the kernel alone when it cannot accept (no file descriptors, for example).
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

class RelayOnAsio final : public Relay {
 public:
  RelayOnAsio(RelayOptions options, EmulatedLink model)
      : options_(std::move(options)),
        link_(context_, std::move(model), [this] { cut(); }),
        shared_{.link = link_,
                .kernel_buffer_bytes = static_cast<int>(
                    std::clamp(options_.link.queue_bytes, kMinKernelBytes, kMaxKernelBytes))} {
    shared_.closed = [this](RelayConnection& connection) {
      connections_.erase(&connection);
      open_ = connections_.size();
    };
    shared_.failed = [this](const Status& why) {
      ++failed_;
      log(why.to_string());
    };
  }

  ~RelayOnAsio() override { stop(); }

  Status bind() {
    for (const RelayMapping& mapping : options_.mappings) {
      Status status = bind(mapping.listen);
      if (!status.ok()) return std::move(status).with_context("listen on " + mapping.listen.to_string());
    }
    return {};
  }

  void run() {
    for (std::size_t i = 0; i < acceptors_.size(); ++i)
      asio::co_spawn(context_, accept(acceptors_[i], options_.mappings[i].target), asio::detached);
    thread_ = std::thread([this] { loop(); });
  }

  const std::vector<std::uint16_t>& ports() const override { return ports_; }

  RelayStats stats() const override {
    return {.there = way_stats(Way::kThere),
            .back = way_stats(Way::kBack),
            .open = open_,
            .accepted = accepted_,
            .failed = failed_,
            .cut = cut_};
  }

  void stop() override {
    if (!thread_.joinable()) return;
    context_.stop();
    thread_.join();
    // Everything is this thread's now. What was suspended is destroyed with the context.
    link_.stop();
    for (Tcp::acceptor& acceptor : acceptors_) {
      error_code ignored;
      acceptor.close(ignored);
    }
    close_connections();
  }

 private:
  Status bind(const core::Address& address) {
    error_code error;
    Tcp::resolver resolver(context_);
    const auto found =
        resolver.resolve(address.host, std::to_string(address.port), Tcp::resolver::passive, error);
    if (error) return {ErrorCode::kInvalidArgument, error.message()};
    const Tcp::endpoint endpoint = found.begin()->endpoint();
    Tcp::acceptor acceptor(context_);
    error_code ignored;
    if (!acceptor.open(endpoint.protocol(), error)) {
      acceptor.set_option(Tcp::acceptor::reuse_address(true), ignored);
      // Accepted sockets inherit them.
      acceptor.set_option(asio::socket_base::receive_buffer_size(shared_.kernel_buffer_bytes), ignored);
      acceptor.set_option(asio::socket_base::send_buffer_size(shared_.kernel_buffer_bytes), ignored);
      if (!acceptor.bind(endpoint, error)) acceptor.listen(asio::socket_base::max_listen_connections, error);
    }
    if (error) return {ErrorCode::kUnavailable, error.message()};
    ports_.push_back(acceptor.local_endpoint(error).port());
    acceptors_.push_back(std::move(acceptor));
    return {};
  }

  void loop() {
    sigset_t all;  // Signals are the main thread's.
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    link_.start();
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception& exception) {  // Of the memory; the connection it hit is closed.
        log(exception.what());
      }
    }
  }

  asio::awaitable<void> accept(Tcp::acceptor& acceptor, core::Address target) {
    asio::steady_timer pause(context_);
    while (acceptor.is_open()) {
      auto [error, socket] = co_await acceptor.async_accept(kAwait);
      if (!acceptor.is_open()) co_return;
      if (error) {
        log("accept: " + error.message());
        pause.expires_after(kAcceptPause);
        co_await pause.async_wait(kAwait);
        continue;
      }
      begin(std::move(socket), target);
    }
  }

  void begin(Tcp::socket socket, const core::Address& target) {
    ++accepted_;
    auto connection = std::make_shared<RelayConnection>(std::move(socket), shared_);
    connections_.emplace(connection.get(), connection);
    open_ = connections_.size();
    if (link_.is_cut()) {
      ++cut_;
      return connection->close(true);
    }
    connection->start(target);
  }

  void cut() {
    cut_ += connections_.size();
    close_connections();
  }

  void close_connections() {
    while (!connections_.empty()) {
      const auto connection = connections_.begin()->second;  // close() takes it out.
      connection->close(true);
    }
  }

  RelayWayStats way_stats(Way way) const {
    return {.delivered_bytes = shared_.delivered_bytes[way],
            .queued_bytes = link_.queued_bytes(way),
            .line_bytes = link_.line_bytes(way),
            .unwritten_bytes = shared_.unwritten_bytes[way]};
  }

  void log(const std::string& text) const {
    if (options_.log) options_.log(text);
  }

  RelayOptions options_;
  asio::io_context context_{1};  // Outlives everything below: it destroys what is still suspended.
  ShapedLink link_;
  RelayShared shared_;
  std::vector<Tcp::acceptor> acceptors_;
  std::vector<std::uint16_t> ports_;
  std::unordered_map<RelayConnection*, std::shared_ptr<RelayConnection>> connections_;
  std::atomic<std::uint64_t> open_{0}, accepted_{0}, failed_{0}, cut_{0};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Relay>> Relay::start(RelayOptions options) {
  if (options.mappings.empty())
    return Status(ErrorCode::kInvalidArgument, "a relay needs an address to listen on");
  std::vector<RateStep> trace;
  if (!options.link.trace.empty()) {
    auto loaded = load_bandwidth_trace(options.link.trace);
    if (!loaded.ok()) return std::move(loaded).status();
    trace = std::move(loaded).value();
  }
  auto model = EmulatedLink::create(options.link, trace, options.seed);
  if (!model.ok()) return std::move(model).status();
  auto relay = std::make_unique<RelayOnAsio>(std::move(options), std::move(model).value());
  ISTHMUS_RETURN_IF_ERROR(relay->bind());
  relay->run();
  return std::unique_ptr<Relay>(std::move(relay));
}

}  // namespace isthmus::wan
