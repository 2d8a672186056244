// The roles of a worker program: `isthmus worker` and `isthmus evaluate` for the synthetic model, and
// `isthmus-trainer` for those that need libtorch. They differ in the Workload only.
//
//   worker CONFIG REGION INDEX [FILE|- [FOLDER STEP...]]
//                                         trains; writes the shared model to FILE at the end, and its own
//                                         gradients of these steps to FOLDER (gradient_recorder.h)
//   evaluate CONFIG [REQUEST]             answers one, or those on standard input (evaluator.h)
//
// Threads: one for signals beside the caller's.
// Memory:  the role's.
// Errors:  on stderr, and by the exit code (core/exit_code.h).

#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "trainer/split.h"
#include "trainer/workload.h"

namespace isthmus::trainer {

using WorkloadFactory = std::function<Result<std::unique_ptr<models::Workload>>(
    const core::JobConfig& config, models::WorkerPlace place, std::stop_token stop)>;

int run_program(const std::vector<std::string>& arguments, const WorkloadFactory& factory);

}  // namespace isthmus::trainer
