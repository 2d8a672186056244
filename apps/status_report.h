// What a running job is doing, for people and for programs.
//
// Threads: pure functions.  Memory: results own their strings.  Errors: none.

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/job_status.h"
#include "apps/progress.h"

namespace isthmus::apps {

struct StatusView {
  std::string job;
  JobStatus status;
  std::vector<std::pair<std::string, std::string>> silent;  // "frankfurt/0", why it did not answer.
  std::optional<Rates> rates;                               // Since the look before.
  std::string region;                                       // Only this one was asked; empty: all were.
};

// Tables.
std::string status_text(const StatusView& view);

// One object, on one line: {"schema":1,"job":...}. What is not known is null; times are seconds.
std::string status_json(const StatusView& view);

}  // namespace isthmus::apps
