// One YAML file describes the whole job. docs/configuration.md has every key.
//
// Threads: pure functions; load_config reads a file.
// Memory:  results own what they hold.
// Errors:  kNotFound for a file that does not exist; kInvalidArgument for anything wrong in it, each in a
//          line "file:line: key: what; how to fix" ("--set: key: ..." when an override is to blame).

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/job_config.h"
#include "isthmus/status.h"

namespace isthmus::core {

// Overrides are "dotted.key=value", as in "trainer.stop.steps=100", "regions[0].workers=3" or
// "optimizer={kind: sgd, learning_rate: 0.1}". An empty value removes the key. The later wins.
Result<JobConfig> load_config(const std::string& path, std::span<const std::string> overrides = {});

// `file_name` is for the messages.
Result<JobConfig> parse_config(std::string_view text, std::string_view file_name,
                               std::span<const std::string> overrides = {});

// The whole config, defaults too, as YAML that parse_config reads back to the same values.
// Relative paths stay relative.
std::string to_yaml(const JobConfig& config);

}  // namespace isthmus::core
