// What a shard must remember to be itself again after a restart. Plain values: what a checkpoint holds
// (checkpoint.h) and what a shard gives and takes (LocalSlice, Membership, RegionSync).
//
// Threads: values; arrays are references that later commits do not change, so they may be written to a disk
//          by another thread while training goes on.
// Memory:  no copy of an array is made; one comes to be when the slice is next written to.
// Errors:  check_fits() says what differs.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/job_config.h"
#include "core/layout.h"
#include "core/versioned_floats.h"
#include "server/outer_messages.h"

namespace isthmus::server {

// Up to where a worker's pushes are applied (policies that commit each on its own).
struct Pushed {
  std::uint64_t incarnation = 0;
  Step steps = 0;
  bool operator==(const Pushed&) const = default;
};

// A home's side of a slice (outer_home.h). Contributions that wait for their round are not in it: whoever
// sent them holds them too, and is told by the Reset after a restart that they were not folded.
struct SavedHome {
  struct Peer {
    ContributionId folded;  // incarnation 0: has not joined.
    bool final_folded = false;
    double weight = 0;
    std::uint64_t deltas = 0;   // Made for it, and ...
    std::uint64_t records = 0;  // ... encoded: where the codec's random numbers go on.
    bool operator==(const Peer&) const = default;
  };
  core::VersionedFloats::Reference global;
  std::uint64_t round = 0;
  std::uint64_t folded_count = 0;
  std::vector<Peer> peers;  // [region]
};

struct SavedSlice {
  core::SliceId slice = 0;
  core::VersionedFloats::Reference parameters;
  std::vector<core::VersionedFloats::Reference> state;  // The optimizer's, and the compensation's after it.
  std::uint64_t version = 0;
  std::uint64_t commits = 0;
  Step committed_step = 0;
  std::map<std::uint32_t, Pushed> pushed;  // By worker.
  std::uint64_t untold_samples = 0;        // Not yet folded at the slice's home.
  AnchorId anchor;                         // With several regions: what the home had told.
  std::optional<SavedHome> home;           // If that is this region.
};

struct SavedMember {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  bool done = false;
  bool operator==(const SavedMember&) const = default;
};

struct SavedShard {
  std::uint32_t shard = 0;  // Index in the region.
  Step clock = 0;           // Steps that every worker had finished.
  std::uint64_t commits = 0;
  std::uint64_t samples = 0;
  std::vector<SavedMember> members;
  std::vector<SavedSlice> slices;  // In the order of their ids.
};

// All of a server's, and what it belongs to.
struct SavedServer {
  std::string job;
  std::string region;
  std::uint32_t server = 0;
  std::string optimizer;      // Its kind.
  bool mean_squares = false;  // Of an adaptive compensation: one more array in each slice's state.
  core::Layout layout;
  std::vector<SavedShard> shards;

  // Of the slowest shard.
  Step step() const;
};

// Whether a server of this config can go on from it; kInvalidArgument says what differs.
Status check_fits(const SavedServer& saved, const core::JobConfig& config, std::uint32_t region,
                  std::uint32_t server);

}  // namespace isthmus::server
