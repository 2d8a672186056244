// The shards of one region as a client sees them: where each answers and which slices it holds.
//
// Threads: values, immutable once made.
// Memory:  O(shards + slices).
// Errors:  check() gives kInvalidArgument and names the member of ClientConfig that is wrong.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/job_config.h"
#include "core/layout.h"
#include "isthmus/config.h"
#include "isthmus/status.h"

namespace isthmus::worker {

struct ShardAddress {
  core::Address address;
  std::string name;  // For a person: "shard 1 at 127.0.0.1:7101".
};

// "127.0.0.1:7101", "[::1]:7101"
std::string to_text(const core::Address& address);

// Everything but the tensors.
Status check(const ClientConfig& config);

// In the order of the servers: shard i of a server is on its port + i. REQUIRES: check(config).ok().
std::vector<ShardAddress> shards_of(const ClientConfig& config);

// A job's layout, spread over a region's shards.
class ShardedLayout {
 public:
  ShardedLayout(core::Layout layout, std::uint32_t shards);

  const core::Layout& layout() const noexcept { return layout_; }
  std::uint32_t shards() const noexcept { return shards_; }
  std::uint32_t shard_of(core::SliceId slice) const noexcept { return shard_of_[slice]; }
  // Of the shard with the most elements.
  std::uint64_t most_elements() const noexcept { return most_elements_; }

 private:
  core::Layout layout_;
  std::uint32_t shards_;
  std::vector<std::uint32_t> shard_of_;
  std::uint64_t most_elements_ = 0;
};

}  // namespace isthmus::worker
