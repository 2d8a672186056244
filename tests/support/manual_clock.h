// A clock that stands still until a test moves it.
//
// Threads: any (atomic).  Memory: none.  Errors: none.

#pragma once

#include <atomic>

#include "core/clock.h"

namespace isthmus::testing {

class ManualClock final : public core::Clock {
 public:
  core::TimePoint now() const override {
    return core::TimePoint(core::TimePoint::duration(ticks_.load(std::memory_order_relaxed)));
  }
  void advance(core::TimePoint::duration by) { ticks_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  std::atomic<core::TimePoint::rep> ticks_{0};
};

}  // namespace isthmus::testing
