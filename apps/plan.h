// What a job will be once it runs: processes, slices, bytes and seconds of a sync, memory. From its config
// and its model's table alone, before anything is started.
//
// Bytes are what the codecs may need at most, with a small estimate for what is around records. Seconds are
// the wire's alone, at the emulated rate of a link between two servers taken for all that two regions say.
//
// Threads: pure functions.
// Memory:  O(regions^2 + shards).
// Errors:  make_plan() gives kInvalidArgument for a table that cannot be trained. What a person should know
//          and what is not wrong is in Plan::warnings.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config_check.h"
#include "core/job_config.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::apps {

struct ShardPlan {
  core::Address lan;
  std::uint64_t slices = 0;
  std::uint64_t elements = 0;
};

// Bytes of one server at its fullest, without what libraries and threads need.
struct MemoryPlan {
  std::uint64_t parameters = 0;  // And their encoding for the workers.
  std::uint64_t optimizer = 0;
  std::uint64_t contributions = 0;  // Of workers, waiting (bsp), or the versions they compute from.
  std::uint64_t region = 0;         // Anchors, and contributions in flight to their homes.
  std::uint64_t home = 0;           // Views of the other regions, and what they have not acknowledged.
  std::uint64_t total() const { return parameters + optimizer + contributions + region + home; }
};

struct ServerPlan {
  core::Address wan;  // No host: none.
  std::vector<ShardPlan> shards;
  MemoryPlan memory;
};

struct RegionPlan {
  std::string name;
  std::uint32_t workers = 0;
  std::vector<ServerPlan> servers;
  std::uint64_t home_slices = 0;  // That it is home to.
  std::uint64_t home_elements = 0;
};

// From one region to another.
struct LinkPlan {
  std::string from;
  std::string to;
  std::uint64_t contributions = 0;         // Bytes a sync, to the slices' homes there ...
  std::uint64_t global_deltas = 0;         // ... and from the homes here.
  std::uint64_t overhead = 0;              // Bytes a sync: frames, acknowledgements, TLS.
  std::uint64_t start_and_end = 0;         // Bytes, once: initial values, and the last, lossless sync.
  std::optional<core::Duration> transfer;  // Of one sync's bytes, at the emulated rate.
  std::uint64_t sync() const { return contributions + global_deltas + overhead; }
};

struct ModelPlan {
  std::uint64_t tensors = 0;
  std::uint64_t slices = 0;
  std::uint64_t elements = 0;
};

struct Plan {
  std::string job;
  std::optional<ModelPlan> model;  // Nothing: the tensors are not known, and no number that needs them.
  std::vector<RegionPlan> regions;
  std::vector<LinkPlan> links;              // Every ordered pair, by `from`, then `to`.
  std::optional<core::Duration> sync_time;  // On the emulated links, from the first byte to the last.
  std::optional<std::uint64_t> syncs;       // Until the stop; fewer when the link needs longer than a period.
  std::optional<std::uint64_t> wan_bytes;   // Of all links, until the stop.
  std::optional<std::uint64_t> dense_bytes;  // What synchronous dense fp32 would send.
  std::vector<core::ConfigProblem> warnings;
};

// `tensors`: nothing for a model whose tensors are known to its workers only.
Result<Plan> make_plan(const core::JobConfig& config, std::optional<std::vector<TensorSpec>> tensors);

}  // namespace isthmus::apps
