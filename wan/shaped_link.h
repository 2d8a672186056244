// The emulated link in real time: takes pieces of bytes, and hands each to its receiver when it is due.
//
// Threads: one, that of its io_context.
// Memory:  the pieces in the queue and on the line, as EmulatedLink bounds them: senders ask for room first.
// Errors:  none of its own.

#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "wan/emulated_link.h"

namespace isthmus::wan {

// What travels in order: bytes, or what ends them.
struct Piece {
  enum class Kind : std::uint8_t { kData, kEnd, kReset };
  Kind kind = Kind::kData;
  std::vector<std::byte> bytes;
};

// Who sends and receives over the link.
class LinkUser {
 public:
  virtual ~LinkUser() = default;
  virtual void arrived(Way way, Piece piece) = 0;
  // It is this one's turn: the link has room for what goes this way.
  virtual void may_send(Way way) = 0;
};

class ShapedLink {
 public:
  // `on_cut` is called when an outage that cuts has begun; what was under way is gone then.
  ShapedLink(boost::asio::io_context& context, EmulatedLink model, std::function<void()> on_cut);

  // Begins the link's time.
  void start();

  // How much may be sent now; 0: nothing, wait_for_room().
  std::size_t room(Way way) const;
  // One may_send(), in turn with all others that wait.
  void wait_for_room(Way way, std::weak_ptr<LinkUser> user);
  // Whoever had its turn and does not send says so.
  void pass_on(Way way);

  void send(Way way, std::shared_ptr<LinkUser> to, Piece piece);

  bool is_cut() const { return model_.cut_at(elapsed()); }

  // Forgets everything and starts no timer again.
  void stop();

  // From any thread.
  std::uint64_t queued_bytes(Way way) const { return queued_bytes_[way]; }
  std::uint64_t line_bytes(Way way) const { return line_bytes_[way]; }

 private:
  struct Sent {
    std::shared_ptr<LinkUser> to;
    Piece piece;
  };
  Duration elapsed() const { return std::chrono::steady_clock::now() - start_; }
  void pump();
  void release(Way way, Duration now);
  void arm();

  boost::asio::steady_timer timer_;
  EmulatedLink model_;
  std::function<void()> on_cut_;
  std::chrono::steady_clock::time_point start_{};
  std::optional<Duration> armed_;
  bool stopped_ = false;
  EachWay<std::deque<Sent>> sent_{};  // In the queue and on the line, in the model's order.
  EachWay<std::deque<std::weak_ptr<LinkUser>>> waiting_{};
  EachWay<std::atomic<std::uint64_t>> queued_bytes_{};
  EachWay<std::atomic<std::uint64_t>> line_bytes_{};
};

}  // namespace isthmus::wan
