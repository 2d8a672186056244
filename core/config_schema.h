// Every key that a job's file may hold, in one place: its name, its unit, its range.
//
// Threads: pure functions.  Memory: none kept.  Errors: the reader's.

#pragma once

#include <string>
#include <vector>

#include "core/config_fields.h"
#include "core/job_config.h"

namespace isthmus::core {

// Takes `fields` through all keys of `config`.
void visit_config(ConfigFields& fields, JobConfig& config);

// "sync.staleness.hard", "regions[].name", ...: every key that holds a value. docs/configuration.md has them
// all.
std::vector<std::string> config_keys();

}  // namespace isthmus::core
