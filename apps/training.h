// One job on this machine from its first process to its last: what `isthmus train` does once everything it
// needs is there.
//
// Threads: the main thread (process.h).
// Memory:  small; the job is other processes.
// Errors:  why the job failed, in the words of the process that failed; kCancelled after a signal.

#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "apps/job_status.h"
#include "apps/local_job.h"
#include "apps/progress.h"
#include "apps/run_folder.h"
#include "apps/summary.h"
#include "core/clock.h"
#include "core/signals.h"

namespace isthmus::apps {

class Training {
 public:
  // The references outlive this. `elements`: of the model. `from_step`: servers go on from their checkpoints
  // of at most this step.
  Training(const core::JobConfig& config, std::uint64_t elements, RunFolder& folder,
           core::StopSignals& signals, ProgressLine& progress, std::optional<Step> from_step = {});

  // Runs the job to its end. The summary holds what is known even if it failed.
  Status run(Summary& summary);

 private:
  Status train();
  void wait_until(core::TimePoint time);
  Status take_signals();
  Status watch_processes();
  // Whether a process that ended so is to be started another time, which servers' checkpoints allow.
  bool may_start_again(const LocalJob::Member& member) const;
  Status start_again(LocalJob::Member& member);
  void look();
  // A server that stands still ends nothing by itself, once no worker is left to miss it.
  Status watch_silence() const;
  void stop_training();
  void write_metrics(const JobStatus& status, const Rates& rates, core::TimePoint now);
  void note_metrics(const nlohmann::ordered_json& json);
  void ask_for_evaluation();
  Status take_answer();
  Result<EvaluatorProcess::Answer> ask_and_wait(const std::string& request);
  Status judge(Summary& summary);
  Status leave();

  const core::JobConfig& config_;
  const std::uint64_t elements_;
  RunFolder& folder_;
  core::StopSignals& signals_;
  ProgressLine& progress_;
  const std::optional<Step> from_step_;
  const core::SystemClock clock_;
  const std::vector<core::Address> shards_;
  std::unique_ptr<LocalJob> job_;
  JobStatus status_;
  std::optional<core::TimePoint> looked_;
  core::TimePoint answered_{};  // When all shards did.
  std::optional<core::TimePoint> started_;
  std::optional<core::TimePoint> ended_;
  std::optional<core::TimePoint> stopping_;  // When a signal came.
  bool stop_wanted_ = false;                 // By a signal, or by what was reached.
  std::optional<Judged> judged_;
  Step next_evaluation_ = 0;
  std::map<std::uint32_t, std::uint32_t> lost_in_;  // Workers, by region.
  std::uint64_t workers_lost_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t restarts_in_vain_ = 0;  // Since the job has last come further than ever.
  Step furthest_ = 0;
  bool metrics_failed_ = false;
};

}  // namespace isthmus::apps
