// Which version of each slice the caller's views hold, so that only newer ones travel.
//
// What a view holds is forgotten when a pull into it starts and known again when that has been decoded: a
// pull that fails, or is cancelled half-way, can only cost bytes.
//
// Threads: belongs to the I/O thread.
// Memory:  O(slices that were pulled).
// Errors:  none.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/operation.h"

namespace isthmus::worker {

class Versions {
 public:
  explicit Versions(std::size_t shards) : memberships_(shards, 1) {}

  // Completes a push-pull that is about to be sent: known versions, and what gradients were computed from.
  void complete(Part& part);
  // Those of an earlier membership count for nothing: that shard may have started anew.
  void hold(std::span<const Held> slices);
  // A shard took us in again: nothing that it said before holds.
  void forget(std::uint32_t shard) { ++memberships_[shard]; }

 private:
  struct Known {
    const float* view = nullptr;
    std::uint64_t version = 0;      // In `view`.
    std::uint64_t last_pulled = 0;  // Into any view.
    std::uint32_t shard = 0;
    std::uint64_t membership = 0;
  };
  // nullptr when nothing is known within the present membership.
  Known* find(core::SliceId slice);

  std::vector<std::uint64_t> memberships_;  // [shard]
  std::vector<Known> known_;                // [slice], as far as needed
};

}  // namespace isthmus::worker
