// One TCP connection through the relay: two sockets, and the bytes that pass between them over the link.
//
// Threads: one, that of its io_context.
// Memory:  what has come off the link and is not written yet: kMaxUnwrittenBytes each way, and what was under
//          way when that was reached. It reads no further then; the kernel's buffers are small, so the
//          sender feels it.
// Errors:  ends with the connection: what one side does (end, reset) the other side sees.

#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "wan/relay.h"
#include "wan/shaped_link.h"

namespace isthmus::wan {

// What the connections of a relay have in common.
struct RelayShared {
  ShapedLink& link;
  int kernel_buffer_bytes = 0;
  EachWay<std::atomic<std::uint64_t>> delivered_bytes{};
  EachWay<std::atomic<std::uint64_t>> unwritten_bytes{};
  std::function<void(class RelayConnection&)> closed{};
  std::function<void(const Status&)> failed{};  // The target cannot be reached.
};

class RelayConnection final : public LinkUser, public std::enable_shared_from_this<RelayConnection> {
 public:
  RelayConnection(boost::asio::ip::tcp::socket client, RelayShared& shared);

  // Connects to the target, then moves bytes until both sides have ended.
  void start(const core::Address& target);

  // At once, both sides; with a reset, so that nobody takes it for an orderly end.
  void close(bool reset);

  void arrived(Way way, Piece piece) override;
  void may_send(Way way) override;

 private:
  using Socket = boost::asio::ip::tcp::socket;

  struct Channel {
    explicit Channel(const Socket::executor_type& executor) : gate(executor) {}
    boost::asio::steady_timer gate;  // Cancelled when it may be worth looking for room again.
    bool in_line = false;            // Of those that wait for the link's room.
    bool writing = false;
    bool ended = false;
    std::uint64_t unwritten_bytes = 0;
    std::deque<Piece> arrived;
  };

  Socket& source(Way way) { return way == Way::kThere ? client_ : target_; }
  Socket& sink(Way way) { return way == Way::kThere ? target_ : client_; }

  void spawn(boost::asio::awaitable<void> work);
  boost::asio::awaitable<void> run(core::Address target);
  boost::asio::awaitable<Status> connect(const core::Address& target);
  boost::asio::awaitable<void> read(Way way);
  boost::asio::awaitable<std::size_t> room(Way way);
  boost::asio::awaitable<void> write(Way way);
  boost::asio::awaitable<void> write_bytes(Way way, const Piece& piece);
  void end(Way way);

  RelayShared& shared_;
  Socket client_;
  Socket target_;
  bool open_ = true;
  EachWay<Channel> channels_;
};

}  // namespace isthmus::wan
