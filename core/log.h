// What processes say to people: lines on standard error, with the time and the process's name.
//
// Threads: any.
// Memory:  bounded, however many kinds of lines there are.
// Errors:  none; a line that cannot be written is lost.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace isthmus::core {

using Log = std::function<void(const std::string&)>;

// A peer must not be able to fill a disk: lines of one kind are let through once a second, and the next one
// says how many were kept back. Two lines are of one kind when they differ in digits only.
class LineLimiter {
 public:
  // The line to write; nullopt to keep it back.
  std::optional<std::string> pass(std::string_view line, TimePoint now);

 private:
  struct Kind {
    TimePoint last;
    std::uint64_t kept_back = 0;
  };
  std::map<std::string, Kind> kinds_;
};

// "2026-11-30 12:00:00.123 frankfurt/server 0: ..."
Log stderr_log(const std::string& name);

}  // namespace isthmus::core
