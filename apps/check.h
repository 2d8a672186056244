// isthmus check: is the config right, what would the job be, and what does this machine lack for it?
//
// Threads: the main thread.  Memory: the plan's.  Errors: a Status that says all that is wrong.

#pragma once

#include <string>
#include <vector>

#include "isthmus/status.h"

namespace isthmus::apps {

struct CheckArguments {
  std::string config{};
  std::vector<std::string> overrides{};  // "dotted.key=value"
  bool json = false;
  bool ports = false;  // Look whether they are free, too.
};

// What to print on stdout.
Result<std::string> check(const CheckArguments& arguments);

}  // namespace isthmus::apps
