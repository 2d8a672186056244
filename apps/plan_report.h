// A plan for people, and for programs.
//
// Threads: pure functions.  Memory: results own their strings.  Errors: none.

#pragma once

#include <string>

#include "apps/plan.h"
#include "core/job_config.h"

namespace isthmus::apps {

// Tables and sentences. `plan`: of `config`.
std::string plan_text(const core::JobConfig& config, const Plan& plan);

// One object, on one line: {"schema":1,"job":...}. What is not known is null; times are seconds.
std::string plan_json(const core::JobConfig& config, const Plan& plan);

}  // namespace isthmus::apps
