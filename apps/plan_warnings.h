// What is allowed and yet probably not meant: found in a job's config and plan before it runs.
//
// Threads: pure.  Memory: the result owns its strings.  Errors: the result.

#pragma once

#include <string>
#include <vector>

#include "apps/plan.h"
#include "core/config_check.h"
#include "core/job_config.h"

namespace isthmus::apps {

// `plan` as make_plan() has it, its warnings aside.
std::vector<core::ConfigProblem> plan_warnings(const core::JobConfig& config, const Plan& plan);

// 127.0.0.0/8, ::1 and localhost: reached from this machine only.
bool is_loopback(const core::Address& address);

}  // namespace isthmus::apps
