// One direction of an emulated link, as arithmetic: a queue that drains at a rate, then a delay.
//
// What is pushed is a piece: some bytes that stay together. A piece departs when its last byte has passed
// the rate, after everything pushed before it; it is released `delay` later, plus its jitter, and never
// before the piece ahead of it. What is on the line when an outage begins still arrives.
//
// Threads: a value for one thread. It reads no clock: time is what the caller says, since the link's start.
// Memory:  a few words a piece; the bytes themselves stay with the caller, in the order of push().
// Errors:  none.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/random.h"

namespace isthmus::wan {

using Duration = std::chrono::nanoseconds;

inline constexpr std::uint64_t kUnlimitedRate = ~std::uint64_t{0};

// From `from` on, until the next one. A rate of 0 lets nothing pass.
struct RateStep {
  Duration from{0};
  std::uint64_t bytes_per_sec = kUnlimitedRate;
  bool operator==(const RateStep&) const = default;
};

struct ShaperOptions {
  // In order of time, the first at 0, the last above 0; it is held.
  std::vector<RateStep> rates{RateStep{}};
  Duration delay{0};
  Duration jitter{0};  // Uniform in [0, jitter].
  std::uint64_t queue_bytes = 1 << 20;
  std::uint64_t seed = 1;    // Of the jitter ...
  std::uint32_t stream = 0;  // ... together with this.
};

class Shaper {
 public:
  explicit Shaper(ShaperOptions options);

  // Puts a piece at the end of the queue. It may be empty: it then marks a place in the order.
  // REQUIRES: `now` never decreases; bytes < 2^32.
  void push(Duration now, std::uint64_t bytes);

  // How large a piece may be pushed now without overfilling the queue; 0: none. Small enough that pieces
  // take turns on a slow link, large enough for a fast one.
  std::uint64_t room(Duration now) const;

  // When the oldest piece of the queue departs.
  std::optional<Duration> next_departure() const { return next_departure_; }
  // Moves it on to the line.  REQUIRES: next_departure().
  void depart();

  // When the oldest piece of the line is released.
  std::optional<Duration> next_release() const;
  void release();  // REQUIRES: next_release().

  // Nothing passes the rate in [begin, end).  REQUIRES: nothing has departed after `begin`.
  void block(Duration begin, Duration end);

  // Forgets every piece.
  void clear();

  std::uint64_t queued_bytes() const { return queued_bytes_; }  // Waiting for the rate.
  std::uint64_t line_bytes() const { return line_bytes_; }      // Departed, not released.
  std::uint64_t passed_bytes() const { return passed_bytes_; }  // Departed since the start.

 private:
  struct Piece {
    Duration time;  // In the queue: of push(). On the line: of its release.
    std::uint64_t bytes;
  };
  struct Interval {
    Duration begin, end;
  };
  struct Finish {
    Duration time;
    std::uint64_t unused;  // Of the last nanosecond, in billionths of a byte.
  };

  // The first change of the rate after `time`.
  std::vector<RateStep>::const_iterator next_step(Duration time) const;
  std::uint64_t rate_at(Duration time) const;
  Finish finish(const Piece& piece) const;
  void plan();

  ShaperOptions options_;
  core::Random random_;
  std::vector<Interval> blocked_;
  std::deque<Piece> queue_;
  std::deque<Piece> line_;
  std::optional<Duration> next_departure_;
  Finish last_departure_{Duration{0}, 0};
  Duration last_release_{0};
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t line_bytes_ = 0;
  std::uint64_t passed_bytes_ = 0;
};

}  // namespace isthmus::wan
