// What shards say about themselves as Prometheus's text (exposition format 0.0.4). The names are an
// interface: docs/watching.md lists them.
//
// Threads: pure functions; process_metrics() reads /proc.  Memory: the text.  Errors: none.

#pragma once

#include <span>
#include <string>

#include "proto/isthmus.pb.h"

namespace isthmus::apps {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// Of each shard that answered.
std::string metrics_text(std::span<const proto::StatusReply> replies);

// Of this process: memory and processor time.
std::string process_metrics();

}  // namespace isthmus::apps
