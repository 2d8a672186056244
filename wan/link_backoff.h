// How long to wait before dialling again: twice as long each time, with jitter so that peers that were cut
// off together do not all come back together.
//
// Threads: belongs to one thread.  Memory: a value.  Errors: none.

#pragma once

#include <algorithm>

#include "core/job_config.h"
#include "core/random.h"

namespace isthmus::wan {

class Backoff {
 public:
  Backoff(core::Duration min, core::Duration max, core::Random random)
      : min_(min), max_(max), next_(min), random_(random) {}

  // In [d/2, d), where d doubles from `min` up to `max`.
  core::Duration next() {
    const core::Duration now = next_;
    next_ = std::min(max_, next_ * 2);
    return jittered(now);
  }
  core::Duration jittered(core::Duration delay) {
    return std::chrono::duration_cast<core::Duration>(delay * (0.5 + 0.5 * random_.uniform()));
  }
  void reset() { next_ = min_; }

 private:
  core::Duration min_;
  core::Duration max_;
  core::Duration next_;
  core::Random random_;
};

}  // namespace isthmus::wan
