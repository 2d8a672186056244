// What a worker's time goes to, step by step: what it computes, and for how long it waits for others.
//
// Time that a caller does not spend inside the client is computing (reading data is part of it). What runs
// while the caller computes costs nothing and is not counted: the shares of encode, exchange and barrier are
// communication that computing does not hide.
//
// Threads: any.  Memory: none.  Errors: none.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "core/clock.h"
#include "core/units.h"
#include "proto/isthmus.pb.h"

namespace isthmus::worker {

class StepTimer {
 public:
  enum class Part : std::size_t {
    kEncode,    // Gradients into messages.
    kExchange,  // Waiting for a push or pull; decoding what was pulled.
    kBarrier,   // Waiting for the others: their steps, their first values.
  };

  explicit StepTimer(core::TimePoint now) : since_(now) {}

  void add(Part part, core::Duration time) noexcept {
    spent_[static_cast<std::size_t>(part)].fetch_add(time.count(), std::memory_order_relaxed);
  }

  // Since the last call, or the start. One thread at a time.
  proto::StepTimes take(core::TimePoint now) {
    std::array<core::Duration, 3> spent{};
    for (std::size_t i = 0; i < spent.size(); ++i)
      spent[i] = core::Duration(spent_[i].exchange(0, std::memory_order_relaxed));
    const core::Duration all = now - since_;
    since_ = now;
    // Several threads may wait at once, for longer together than there was time.
    const core::Duration left = all - std::accumulate(spent.begin(), spent.end(), core::Duration(0));
    proto::StepTimes times;
    times.set_compute_us(in_us(std::max(left, core::Duration(0))));
    times.set_encode_us(in_us(spent[0]));
    times.set_exchange_us(in_us(spent[1]));
    times.set_barrier_us(in_us(spent[2]));
    return times;
  }

 private:
  static std::uint64_t in_us(core::Duration time) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  }

  std::array<std::atomic<core::Duration::rep>, 3> spent_{};
  core::TimePoint since_;
};

}  // namespace isthmus::worker
