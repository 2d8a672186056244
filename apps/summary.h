// What a run was: for people a table, for programs one JSON object.
//
// Threads: pure functions.  Memory: values.  Errors: none.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/job_status.h"
#include "core/job_config.h"

namespace isthmus::apps {

struct LinkSummary {
  std::string from;
  std::string to;
  std::uint64_t bytes = 0;        // Under TLS.
  std::uint64_t dense_bytes = 0;  // What synchronous dense fp32 would have sent.
};

struct Summary {
  std::string status = "ok";       // "ok", "stopped", "failed"
  double seconds = 0;              // From the first step to the end of the last sync.
  Step steps = 0;                  // Of the slowest region.
  std::optional<double> accuracy;  // Of the shared model; absent when it was not judged.
  std::optional<double> loss;
  std::map<std::string, double> region_accuracy;  // Each region's own copy, before the last sync.
  double samples_per_second = 0;
  double exposed_communication = 0;  // Share of the workers' time that computing did not hide. [0, 1]
  std::uint64_t staleness_p50 = 0;
  std::uint64_t staleness_p99 = 0;
  std::vector<LinkSummary> links;
  std::uint64_t lan_bytes = 0;
  std::optional<float> max_replica_difference;
  std::optional<float> largest_parameter;
  std::uint64_t workers_lost = 0;        // Processes that crashed or failed.
  std::uint64_t restarts = 0;            // Of processes, with checkpoints.
  std::uint64_t refused_not_finite = 0;  // Contributions with NaN or Inf.
};

// Synchronous dense fp32 sends each region's gradients up and the parameters down at each step,
// 2 (R - 1) * 4 * elements * steps bytes in all; each of the R (R - 1) directed links carries an equal part.
std::uint64_t dense_bytes_per_link(std::size_t regions, std::uint64_t elements, Step steps);

// All that the servers' last words tell.
Summary summarise(const core::JobConfig& config, const JobStatus& status, std::uint64_t elements,
                  double seconds);

std::string to_json(const Summary& summary);
std::string to_table(const Summary& summary);

}  // namespace isthmus::apps
