// What a running job is doing, put together from what its shards say about themselves.
//
// Threads: pure functions.
// Memory:  results own what they hold.
// Errors:  none: whoever did not answer is missing, and what does not fit the config is left out.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job_config.h"
#include "proto/isthmus.pb.h"

namespace isthmus::apps {

// What workers' time went to, in seconds (worker/step_timer.h).
struct WorkerTimes {
  double compute = 0, encode = 0, exchange = 0, barrier = 0;

  double all() const noexcept { return compute + encode + exchange + barrier; }
  // The share that computing did not hide; 0 when nothing is known.
  double exposed() const noexcept { return all() > 0 ? (all() - compute) / all() : 0; }
};

struct WorkerState {
  std::uint32_t worker = 0;
  Step step = 0;                       // Finished at every shard.
  std::chrono::milliseconds lease{0};  // Left; 0: the lease has ended, or the worker is done.
  std::uint64_t refused = 0;           // Contributions; the most that one shard refused.
  bool done = false;
  WorkerTimes times = {};
};

struct ShardState {
  std::uint32_t server = 0;
  std::uint32_t shard = 0;                 // Index in the region.
  std::optional<proto::ShardStatus> says;  // Nothing: it did not answer.
};

struct RegionState {
  std::string name;
  std::vector<ShardState> shards;  // All of the config's, in order.
  std::size_t answered = 0;
  proto::Phase phase = proto::PHASE_WAITING;  // Of the shard that is least far.
  bool halted = false;                        // Some workers wait at the hard staleness bound.
  Step clock = 0;                             // Finished by the slowest living worker.
  std::uint64_t samples = 0;                  // Trained on.
  std::uint64_t lan_bytes = 0;                // Both ways, of all shards.
  std::vector<WorkerState> workers;           // That ever joined, by number.
};

// All links from one region to another, in that direction.
struct DirectedLink {
  std::string from;
  std::string to;
  std::size_t links = 0;  // Known, each from a server to a server; `from` did not answer: 0.
  std::size_t up = 0;
  std::uint64_t bytes = 0;  // Under TLS.
  std::uint64_t reconnects = 0;
  std::uint64_t refused = 0;         // Peers and messages.
  std::chrono::microseconds rtt{0};  // The longest; 0: not measured yet.
  std::string last_error;
};

struct JobStatus {
  std::vector<RegionState> regions;
  std::vector<DirectedLink> links;  // Every ordered pair, by `from`, then `to`.
  std::size_t shards = 0;
  std::size_t answered = 0;
  proto::Phase phase = proto::PHASE_WAITING;  // Of the region that is least far.
  Step clock = 0;                             // Of the slowest region that answered.
  std::uint64_t samples = 0;
  std::uint64_t lan_bytes = 0;
  std::uint64_t wan_bytes = 0;
  WorkerTimes times;                     // Of all workers.
  std::vector<std::uint64_t> staleness;  // Histogram: [i] contributions (syncs, with several regions) of i.
  std::uint64_t refused_not_finite = 0;
  std::uint64_t refused_malformed = 0;
  std::uint64_t overflows = 0;              // Rounds between regions whose sum was not finite.
  std::set<std::string> last_sync_without;  // Regions that some region's last sync could not reach.
  std::vector<std::pair<std::string, std::string>> last_errors;  // "frankfurt/0", what it said.
};

// Of several answers of one shard, the last counts.
JobStatus job_status(const core::JobConfig& config, std::span<const proto::StatusReply> replies);

// The smallest value that at least `share` of what was counted does not exceed; nothing when nothing was
// counted. REQUIRES: 0 <= share <= 1.
std::optional<std::uint64_t> percentile(std::span<const std::uint64_t> histogram, double share);

// "waiting", "training", "draining", "drained"; stable, for tables and JSON.
std::string_view to_string(proto::Phase phase) noexcept;

}  // namespace isthmus::apps
