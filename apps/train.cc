// `isthmus train`: a whole job on this machine, from its processes to its summary.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/command.h"
#include "apps/command_line.h"
#include "apps/job_status.h"
#include "apps/local_job.h"
#include "apps/programs.h"
#include "apps/progress.h"
#include "apps/report.h"
#include "apps/run_folder.h"
#include "apps/signals.h"
#include "apps/summary.h"
#include "core/config_file.h"
#include "core/layout.h"
#include "trainer/dataset.h"
#include "trainer/model_table.h"
#include "wan/certificates.h"
#include "worker/admin.h"

namespace isthmus::apps {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(500);
constexpr auto kStatusTimeout = std::chrono::milliseconds(400);
constexpr auto kStopGrace =
    std::chrono::milliseconds(3500);  // A stopped job drains within this, or is ended.
constexpr auto kEndGrace = std::chrono::milliseconds(1000);
constexpr auto kExitGrace = std::chrono::seconds(10);
constexpr std::size_t kLogLines = 8;
constexpr float kAgreed = 1e-5f;  // Of the largest parameter: rounding, no more.

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string run_folder;
  bool quiet = false;
  bool json = false;
};

// What must hold before a process is worth starting. Gives the model's elements.
Result<std::uint64_t> prepare(const core::JobConfig& config) {
  const core::TrainerConfig& trainer = config.trainer;
  if (trainer.model == "custom")
    return Status(ErrorCode::kInvalidArgument,
                  "train runs the reference workers; a custom model's workers are programs of your own (see "
                  "examples/)");
  auto table = models::model_table(trainer);
  if (!table.ok()) return std::move(table).status();
  const auto layout = core::Layout::create(*std::move(table), config.slice_elements);
  if (!layout.ok()) return layout.status();
  if (trainer.model != "synthetic") {
    if (access(trainer_program().c_str(), X_OK) != 0)
      return Status(ErrorCode::kNotFound, trainer_program() + " is not there; the model '" + trainer.model +
                                              "' needs it: install libtorch-dev and build again");
    if (const auto data = models::load_dataset(trainer); !data.ok()) return data.status();
  }
  if (config.regions.size() > 1 && !config.security.plaintext) {
    std::vector<std::string> names;
    for (const core::RegionConfig& region : config.regions) names.push_back(region.name);
    const auto keys = wan::ensure_keys(config.security.directory, config.job, names);
    if (!keys.ok()) return keys.status();
  }
  return layout->elements();
}

class Training {
 public:
  Training(const core::JobConfig& config, std::uint64_t elements, RunFolder& folder, StopSignals& signals,
           ProgressLine& progress)
      : config_(config),
        elements_(elements),
        folder_(folder),
        signals_(signals),
        progress_(progress),
        shards_(shard_addresses(config)) {}

  // Runs the job to its end. The summary holds what is known even if it failed.
  Status run(Summary& summary) {
    auto job = LocalJob::start(config_, folder_, [this](const std::string& line) { (void)line; });
    if (!job.ok()) return std::move(job).status();
    job_ = *std::move(job);
    Status status = train();
    if (status.ok()) status = judge(summary);
    const double seconds = std::chrono::duration<double>((ended_ ? *ended_ : clock_.now()) -
                                                         (started_ ? *started_ : clock_.now()))
                               .count();
    const Summary judged = summary;
    summary = summarise(config_, status_, elements_, seconds);
    summary.accuracy = judged.accuracy;
    summary.loss = judged.loss;
    summary.region_accuracy = judged.region_accuracy;
    summary.max_replica_difference = judged.max_replica_difference;
    summary.largest_parameter = judged.largest_parameter;
    summary.workers_lost = workers_lost_;
    summary.status = stopping_ ? "stopped" : status.ok() ? "ok" : "failed";
    if (status.ok()) status = leave();
    progress_.clear();
    job_->terminate(kEndGrace);
    return stopping_ ? stopped(status) : status;
  }

 private:
  // However far the end went that was asked for: nothing that it cut short is a failure of its own.
  static Status stopped(const Status& status) {
    if (status.code() == ErrorCode::kCancelled) return status;
    return {ErrorCode::kCancelled, "stopped by a signal" + (status.ok() ? "" : "; " + status.message())};
  }

  // Until the last sync is done everywhere.
  Status train() {
    core::TimePoint next_look = clock_.now();
    while (true) {
      wait_until(next_look);
      ISTHMUS_RETURN_IF_ERROR(take_signals());
      ISTHMUS_RETURN_IF_ERROR(watch_processes());
      take_answers();
      if (clock_.now() < next_look) continue;
      next_look = clock_.now() + kLookInterval;
      look();
      if (status_.answered == status_.shards && status_.phase == proto::PHASE_DRAINED) {
        ended_ = clock_.now();
        return {};
      }
      ask_for_evaluation();
    }
  }

  void wait_until(core::TimePoint time) {
    std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0},
                                   {job_->evaluator().process().output_fd(), POLLIN, 0}};
    for (const LocalJob::Member& member : job_->members()) {
      if (!member.ending) entries.push_back({member.process.exit_fd(), POLLIN, 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - clock_.now()).count();
    if (left > 0) (void)::poll(entries.data(), entries.size(), static_cast<int>(left));
  }

  Status take_signals() {
    const bool again = stopping_.has_value();
    if (const auto signal = signals_.take()) {
      if (again) return {ErrorCode::kCancelled, "stopped by a second signal"};
      stopping_ = clock_.now();
      progress_.say("stopping: the last sync, then the end (once more to end at once)");
      stop_training();
    }
    if (stopping_ && clock_.now() - *stopping_ >= kStopGrace)
      return {ErrorCode::kCancelled, "stopped by a signal; the last sync could not be done in time"};
    return {};
  }

  void stop_training() { (void)worker::control(shards_, proto::CONTROL_STOP, kStatusTimeout); }

  Status watch_processes() {
    for (const LocalJob::Member* member : job_->reap()) {
      if (!member->server && member->ending->ok()) {
        ++workers_done_[member->region];
        continue;
      }
      // A worker that a stop overtook on its way in is refused; it is not lost.
      if (!member->server && stopping_ && member->ending->signal == 0) continue;
      std::string text = member->process.name() + " ended: " + member->ending->to_string();
      for (const std::string& line : last_lines(member->process.log(), kLogLines)) text += "\n  | " + line;
      text += "\n  (" + member->process.log().string() + ")";
      if (member->server) return {code_of(*member->ending), text};
      ++workers_lost_;
      progress_.say(text);
      if (++lost_in_[member->region] == config_.regions[member->region].workers)
        return {code_of(*member->ending),
                "region " + config_.regions[member->region].name + " has lost all its workers"};
    }
    return {};
  }

  // What the child said with its exit code, so that ours says it too.
  static ErrorCode code_of(const Ending& ending) {
    if (ending.signal != 0) return ErrorCode::kResourceExhausted;
    switch (ending.exit_code) {
      case kExitConnection: return ErrorCode::kRefused;
      case kExitTimeout: return ErrorCode::kTimeout;
      case kExitUsage: return ErrorCode::kInvalidArgument;
      default: return ErrorCode::kResourceExhausted;
    }
  }

  void look() {
    std::vector<proto::StatusReply> replies;
    for (auto& reply : worker::status(shards_, kStatusTimeout)) {
      if (reply.ok()) replies.push_back(*std::move(reply));
    }
    const core::TimePoint now = clock_.now();
    JobStatus status = job_status(config_, replies);
    // A shard that is busy for a moment must not look like one that was set back.
    if (status.answered < status_.answered) return;
    const bool began =
        std::any_of(status.regions.begin(), status.regions.end(),
                    [](const RegionState& region) { return region.phase != proto::PHASE_WAITING; });
    if (!started_ && began) started_ = looked_.value_or(now);
    if (looked_) {
      const Rates rates = rates_between(status_, status, now - *looked_);
      progress_.show(progress_text(config_, status, rates, judged_, now - started_.value_or(now)), now);
      if (started_) write_metrics(status, rates, now);
    }
    looked_ = now;
    status_ = std::move(status);
  }

  void write_metrics(const JobStatus& status, const Rates& rates, core::TimePoint now) {
    nlohmann::ordered_json links;
    for (const DirectedLink& link : status.links)
      links[link.from + "->" + link.to] = {{"bytes", link.bytes}, {"up", link.up == link.links}};
    note_metrics({{"seconds", std::chrono::duration<double>(now - *started_).count()},
                  {"phase", to_string(status.phase)},
                  {"step", status.clock},
                  {"samples_per_second", rates.samples_per_second},
                  {"lan_bytes", status.lan_bytes},
                  {"wan", links},
                  {"staleness_p50", percentile(status.staleness, 0.5).value_or(0)}});
  }

  // A run goes on when its folder's disk is full; it is said once.
  void note_metrics(const nlohmann::ordered_json& json) {
    if (metrics_failed_) return;
    if (const Status status = folder_.append_metrics(json.dump()); !status.ok()) {
      metrics_failed_ = true;
      progress_.say(status.to_string() + "; the run goes on without metrics");
    }
  }

  void ask_for_evaluation() {
    const Step every = config_.trainer.evaluate_every;
    if (config_.trainer.model == "synthetic" || every == 0 || status_.phase != proto::PHASE_TRAINING) return;
    if (status_.clock < next_evaluation_ + every || job_->evaluator().busy()) return;
    next_evaluation_ = status_.clock / every * every;
    (void)job_->evaluator().ask("shared " + config_.regions[0].name);
  }

  void take_answers() {
    const auto answer = job_->evaluator().take();
    if (!answer || !answer->ok() || !started_) return;
    judged_ = Judged{(*answer)->step, (*answer)->accuracy, (*answer)->loss};
    note_metrics({{"seconds", std::chrono::duration<double>(clock_.now() - *started_).count()},
                  {"step", judged_->step},
                  {"accuracy", judged_->accuracy},
                  {"loss", judged_->loss}});
    const auto& wanted = config_.trainer.stop.accuracy;
    if (wanted && judged_->accuracy >= *wanted) stop_training();
  }

  Result<EvaluatorProcess::Answer> ask_and_wait(const std::string& request) {
    EvaluatorProcess& evaluator = job_->evaluator();
    const core::TimePoint until = clock_.now() + config_.limits.operation_timeout;
    bool asked = false;
    while (clock_.now() < until) {
      if (auto answer = evaluator.take(); answer && asked) return *std::move(answer);
      if (!asked && !evaluator.busy()) {
        ISTHMUS_RETURN_IF_ERROR(evaluator.ask(request));
        asked = true;
      }
      if (signals_.take()) return Status(ErrorCode::kCancelled, "stopped by a signal");
      pollfd entries[] = {{signals_.fd(), POLLIN, 0}, {evaluator.process().output_fd(), POLLIN, 0}};
      (void)::poll(
          entries, 2,
          static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(until - clock_.now()).count()));
    }
    return Status(ErrorCode::kTimeout, "the evaluator did not answer '" + request + "'");
  }

  Status judge(Summary& summary) {
    const bool judged = config_.trainer.model != "synthetic";
    for (const core::RegionConfig& region : config_.regions) {
      if (!judged) break;
      const auto answer = ask_and_wait("own " + region.name);
      if (!answer.ok()) return answer.status();
      summary.region_accuracy[region.name] = answer->accuracy;
    }
    const auto final = ask_and_wait("final " + config_.regions[0].name + " " + folder_.model().string());
    if (!final.ok()) return final.status();
    summary.loss = final->loss;
    if (judged) summary.accuracy = final->accuracy;
    const auto agreement = ask_and_wait("compare");
    if (!agreement.ok()) return agreement.status();
    summary.max_replica_difference = agreement->difference;
    summary.largest_parameter = agreement->largest;
    // A region that was out of reach for too long is given up by the others' last sync.
    if (agreement->difference > kAgreed * agreement->largest)
      return {ErrorCode::kResourceExhausted,
              "the last sync could not reach every region within limits.operation_timeout: their parameters "
              "differ by " +
                  std::to_string(agreement->difference)};
    return {};
  }

  // Tells the servers to exit and waits until they have.
  Status leave() {
    for (const Status& status : worker::control(shards_, proto::CONTROL_EXIT, kStatusTimeout)) (void)status;
    const core::TimePoint until = clock_.now() + kExitGrace;
    while (!job_->servers_ended() && clock_.now() < until) {
      wait_until(until);
      for (const LocalJob::Member* member : job_->reap()) {
        if (member->server && !member->ending->ok())
          return {code_of(*member->ending),
                  member->process.name() + " ended: " + member->ending->to_string()};
      }
      if (signals_.take()) break;
    }
    return {};
  }

  const core::JobConfig& config_;
  const std::uint64_t elements_;
  RunFolder& folder_;
  StopSignals& signals_;
  ProgressLine& progress_;
  const core::SystemClock clock_;
  const std::vector<core::Address> shards_;
  std::unique_ptr<LocalJob> job_;
  JobStatus status_;
  std::optional<core::TimePoint> looked_;
  std::optional<core::TimePoint> started_;
  std::optional<core::TimePoint> ended_;
  std::optional<core::TimePoint> stopping_;
  std::optional<Judged> judged_;
  Step next_evaluation_ = 0;
  std::map<std::uint32_t, std::uint32_t> workers_done_;
  std::map<std::uint32_t, std::uint32_t> lost_in_;
  std::uint64_t workers_lost_ = 0;
  bool metrics_failed_ = false;
};

Status train(const TrainArguments& arguments) {
  const auto config = core::load_config(arguments.config, arguments.overrides);
  if (!config.ok()) return config.status();
  auto signals = StopSignals::create();
  if (!signals.ok()) return std::move(signals).status();
  const auto elements = prepare(*config);
  if (!elements.ok()) return elements.status();
  auto folder = RunFolder::create(*config, arguments.run_folder);
  if (!folder.ok()) return std::move(folder).status();

  const auto mode = arguments.quiet              ? ProgressLine::Mode::kQuiet
                    : isatty(STDERR_FILENO) == 1 ? ProgressLine::Mode::kTerminal
                                                 : ProgressLine::Mode::kPlain;
  ProgressLine progress(mode, stderr);
  if (!arguments.quiet) progress.say("run folder: " + folder->path().string());
  Summary summary;
  const Status status = Training(*config, *elements, *folder, **signals, progress).run(summary);
  const Status written = folder->write_summary(to_json(summary));
  std::fputs((arguments.json ? to_json(summary) + "\n" : to_table(summary)).c_str(), stdout);
  return status.ok() ? written : status;
}

}  // namespace

int run_train(Arguments arguments) {
  TrainArguments train_arguments;
  CommandLine line("train",
                   "Runs a whole job on this machine: every process of every region, over emulated links.");
  line.positional("CONFIG", train_arguments.config, "the job's config file", CommandLine::Need::kRequired);
  line.texts("--set", train_arguments.overrides, "KEY=VALUE",
             "override a key of the config, as trainer.stop.steps=100");
  line.text("--run", train_arguments.run_folder, "FOLDER",
            "where the run is kept; run/JOB/DATE-TIME unless given");
  line.flag("--quiet", train_arguments.quiet, "no progress line");
  line.flag("--json", train_arguments.json, "print the summary as one JSON object");
  line.examples("  isthmus train configs/quickstart.yaml\n  isthmus train job.yaml --set seed=2 --json");
  if (const auto code = line.parse(arguments)) return *code;
  return report(train(train_arguments));
}

}  // namespace isthmus::apps
