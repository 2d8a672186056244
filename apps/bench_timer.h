// How fast a pass over memory is, beside a streaming read of the same memory at the same time.
//
// A machine's memory is faster at one moment than at the next, most of all a rented one's. So each run of a
// pass is timed right after a streaming read, the ratio is taken of these two, and the median of the ratios
// counts: what slows both slows neither. Time is the thread's own, so another process on its core does not
// count.
//
// Threads: one.
// Memory:  reads the input, which must outlive the timer.
// Errors:  none.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/units.h"

namespace isthmus::apps {

struct Pace {
  double gb_per_s = 0;  // 10^9 bytes of input a second: the median.
  double ratio = 0;     // To the streaming read: the median of pairs.
};

// REQUIRES: as many of one as of the other, at least one, all > 0.
Pace pace_of(std::uint64_t bytes, std::span<const double> read_seconds, std::span<const double> seconds);

// REQUIRES: not empty. Of an even number the mean of the middle two.
double median(std::vector<double> values);

class BenchTimer {
 public:
  // Each pass is run once for practice and then `repeats` times, or fewer once it has taken `time`.
  BenchTimer(std::span<const float> input, std::uint64_t repeats, core::Duration time);

  // `prepare` runs before each time and does not count.
  Pace measure(const std::function<void()>& pass, const std::function<void()>& prepare = {});

  // 10^9 bytes a second: the median of all streaming reads so far. REQUIRES: measure() was called.
  double read_gb_per_s() const;

 private:
  std::span<const float> input_;
  std::uint64_t repeats_;
  core::Duration time_;
  std::vector<double> reads_;
  std::uint64_t seen_ = 0;  // So that a read has a result that matters.
};

}  // namespace isthmus::apps
