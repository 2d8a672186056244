// The line that a long job keeps up to date on a terminal, and prints now and then into a pipe.
//
// Threads: one.  Memory: small.  Errors: none.

#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "apps/job_status.h"
#include "core/clock.h"
#include "core/job_config.h"

namespace isthmus::apps {

struct Judged {
  Step step = 0;
  double accuracy = 0;
  double loss = 0;
};

// Two looks at a job, and what changed between them.
struct Rates {
  double steps_per_second = 0;
  double samples_per_second = 0;
  std::vector<double> link_bits_per_second;  // In the order of JobStatus::links.
};
Rates rates_between(const JobStatus& before, const JobStatus& now, std::chrono::nanoseconds time);

// "step 1200/3000  accuracy 87.1 %  loss 0.362  21300 samples/s  WAN frankfurt>virginia 0.41 Mbit/s ...
//  staleness 3  ETA 25 s"
std::string progress_text(const core::JobConfig& config, const JobStatus& status, const Rates& rates,
                          const std::optional<Judged>& judged, std::chrono::nanoseconds trained);

class ProgressLine {
 public:
  enum class Mode { kQuiet, kTerminal, kPlain };
  ProgressLine(Mode mode, std::FILE* out) : mode_(mode), out_(out) {}
  ~ProgressLine() { clear(); }

  // A terminal shows each; a pipe one in five seconds.
  void show(const std::string& text, core::TimePoint now);
  // A line that stays, whatever the mode.
  void say(const std::string& line);
  void clear();

 private:
  const Mode mode_;
  std::FILE* const out_;
  std::size_t width_ = 0;
  std::optional<core::TimePoint> last_;
};

}  // namespace isthmus::apps
