#include "wan/bandwidth_trace.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/units.h"

namespace isthmus::wan {
namespace {

Result<RateStep> parse_line(const std::string& line) {
  std::istringstream fields(line);
  std::string seconds, rate, more;
  fields >> seconds >> rate >> more;
  if (rate.empty() || !more.empty())
    return Status(ErrorCode::kInvalidArgument, "write a time in seconds and a rate, for example: 30 10Mbps");
  // The column is in seconds by definition; everywhere else a time has its unit.
  auto from = core::parse_duration(seconds + "s");
  if (!from.ok())
    return Status(ErrorCode::kInvalidArgument,
                  "'" + seconds + "' is not a time in seconds, for example 30 or 1.5");
  auto bytes_per_sec = core::parse_rate(rate);
  if (!bytes_per_sec.ok()) return std::move(bytes_per_sec).status();
  return RateStep{*from, *bytes_per_sec};
}

}  // namespace

Result<std::vector<RateStep>> parse_bandwidth_trace(std::string_view text, const std::string& name) {
  std::vector<RateStep> steps;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = name + ":" + std::to_string(number);
    auto step = parse_line(line);
    if (!step.ok()) return std::move(step).status().with_context(place);
    if (!steps.empty() && step->from <= steps.back().from)
      return Status(ErrorCode::kInvalidArgument, place + ": times must increase");
    steps.push_back(*step);
  }
  if (steps.empty()) return Status(ErrorCode::kInvalidArgument, name + ": has no line 'seconds rate'");
  if (steps.back().bytes_per_sec == 0)
    return Status(ErrorCode::kInvalidArgument, name + ": the last rate is held, so it must be above 0");
  return steps;
}

Result<std::vector<RateStep>> load_bandwidth_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(ErrorCode::kNotFound, path + ": " + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad() || !text) return Status(ErrorCode::kNotFound, path + ": cannot be read");
  return parse_bandwidth_trace(text.str(), path);
}

}  // namespace isthmus::wan
