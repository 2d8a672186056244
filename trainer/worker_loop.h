// What a worker does, whatever it computes: pull, compute, push, next step.
//
// Threads: the caller's; `stop` may be requested from any.
// Memory:  one set of parameters and one of gradients, beside the Client's.
// Errors:  kCancelled when `stop` ended it; a refused contribution (NaN) is reported and the loop goes on; a
//          lost lease is mended by pulling anew; anything else ends the loop.

#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/job_config.h"
#include "isthmus/client.h"
#include "isthmus/status.h"
#include "trainer/workload.h"

namespace isthmus::trainer {

struct WorkerOptions {
  const core::JobConfig& config;
  std::string region;
  std::uint32_t worker = 0;
  // Waits for the last sync and writes the shared model there.
  std::optional<std::filesystem::path> save;
  std::stop_token stop;
  std::function<void(std::string_view)> log;
};

Status run_worker(models::Workload& workload, const WorkerOptions& options);

}  // namespace isthmus::trainer
