// What a process of the job answers to those who watch it: /metrics for Prometheus, /healthz for whoever
// restarts what is not well.
//
// Threads: the result may be called on any, one at a time; it blocks until all shards have answered or
//          kAnswerTimeout is over. It asks them as `isthmus status` does, so that a shard that hangs is seen.
// Memory:  one answer a shard.
// Errors:  a shard that does not answer makes /healthz a 503 that names it, and is missing in /metrics.

#pragma once

#include <chrono>
#include <vector>

#include "apps/http_endpoint.h"
#include "core/job_config.h"

namespace isthmus::apps {

inline constexpr auto kAnswerTimeout = std::chrono::seconds(1);

HttpEndpoint::Answer watch_shards(std::vector<core::Address> shards);

// Where a server's own process reaches its shards.
std::vector<core::Address> own_shards(const core::ServerConfig& server);

}  // namespace isthmus::apps
