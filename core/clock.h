// Time, as something that is handed in: tests own a ManualClock (tests/support/manual_clock.h).
//
// Threads: now() from any thread.  Memory: none.  Errors: none.

#pragma once

#include <chrono>

namespace isthmus::core {

// Monotonic; the origin means nothing.
using TimePoint = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace isthmus::core
