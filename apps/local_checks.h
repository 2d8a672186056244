// What a job needs of this machine: its data, its keys, its ports. Cheap looks; nothing is loaded or kept.
//
// Threads: any.  Memory: the result.  Errors: the result; what cannot be looked at is left out.

#pragma once

#include <vector>

#include "core/config_check.h"
#include "core/job_config.h"

namespace isthmus::apps {

// The data set's files are there, and the keys.
std::vector<core::ConfigProblem> find_missing_files(const core::JobConfig& config);

// Ports that servers would bind and that are taken now. Addresses of other machines, and names that only DNS
// knows, are not looked at. A running job holds its own ports.
std::vector<core::ConfigProblem> find_taken_ports(const core::JobConfig& config);

}  // namespace isthmus::apps
