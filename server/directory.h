// Where each slice lives: which region is its home, and which shard of which server holds it in each region.
// A pure function of the config and the layout, so that every process computes the same.
//
// Threads: immutable.  Memory: O(regions * slices).  Errors: none, but of the check.

#pragma once

#include <cstdint>
#include <vector>

#include "core/job_config.h"
#include "core/layout.h"
#include "isthmus/status.h"

namespace isthmus::server {

class Directory {
 public:
  // Homes are spread evenly over the regions.
  Directory(const core::JobConfig& config, const core::Layout& layout);

  std::uint32_t home_of(core::SliceId slice) const { return homes_[slice]; }
  // Index over all shards of the region. REQUIRES: valid indices.
  std::uint32_t shard_of(std::uint32_t region, core::SliceId slice) const { return shards_[region][slice]; }
  std::uint32_t server_of(std::uint32_t region, core::SliceId slice) const {
    return server_of_shard_[region][shard_of(region, slice)];
  }
  // The first of the region's shards that `server` runs.
  std::uint32_t first_shard(std::uint32_t region, std::uint32_t server) const;
  std::size_t slices() const noexcept { return homes_.size(); }

 private:
  std::vector<std::uint32_t> homes_;
  std::vector<std::vector<std::uint32_t>> shards_;
  std::vector<std::vector<std::uint32_t>> server_of_shard_;
};

// Workers exchange all of a shard's values in one message: whether limits.message holds the largest shard's.
// kInvalidArgument names the key and what it needs.
Status check_message_limit(const core::JobConfig& config, const core::Layout& layout);

}  // namespace isthmus::server
