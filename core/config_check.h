// What a config must hold beyond each key alone: names that are unique, ports that do not collide,
// bounds that fit each other.
//
// Threads: pure functions.  Memory: results own their strings.  Errors: the result.

#pragma once

#include <string>
#include <vector>

#include "core/job_config.h"

namespace isthmus::core {

struct ConfigProblem {
  std::string key;      // "regions[1].servers[0].lan"
  std::string message;  // What; how to fix.
};

// Empty when all is well.
std::vector<ConfigProblem> find_problems(const JobConfig& config);

}  // namespace isthmus::core
