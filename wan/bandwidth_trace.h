// A bandwidth trace: how the rate of an emulated link changes over time, one "seconds rate" a line.
//
//   # a mobile link
//   0     10Mbps
//   30    1.5Mbps
//   31.5  0bps      # nothing passes
//   40    10Mbps
//
// Seconds count from the link's start and may have a fraction. Before the first line the link has its
// constant rate; the last rate is held. Empty lines and what follows a '#' do not count.
//
// Threads: pure functions, but for the file.  Memory: values.
// Errors:  kNotFound: no such file; kInvalidArgument with file:line.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "isthmus/status.h"
#include "wan/shaper.h"

namespace isthmus::wan {

// `name` is what errors call it.
Result<std::vector<RateStep>> parse_bandwidth_trace(std::string_view text, const std::string& name);

Result<std::vector<RateStep>> load_bandwidth_trace(const std::string& path);

}  // namespace isthmus::wan
