#include "apps/training.h"

#include <poll.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/exit_code.h"
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
constexpr std::uint64_t kMostRestartsInVain = 10;  // A process that ends at once ends the job after these.
constexpr float kAgreed = 1e-5f;                   // Of the largest parameter: rounding, no more.

double seconds_of(core::Duration time) { return std::chrono::duration<double>(time).count(); }

// What the child said with its exit code, so that ours says it too.
ErrorCode code_of(const Ending& ending) {
  if (ending.signal != 0) return ErrorCode::kFailed;
  switch (ending.exit_code) {
    case core::kExitConnection: return ErrorCode::kRefused;
    case core::kExitTimeout: return ErrorCode::kTimeout;
    case core::kExitUsage: return ErrorCode::kInvalidArgument;
    default: return ErrorCode::kFailed;
  }
}

// However far the end went that was asked for: nothing that it cut short is a failure of its own.
Status stopped(const Status& status) {
  if (status.code() == ErrorCode::kCancelled) return status;
  return {ErrorCode::kCancelled, "stopped by a signal" + (status.ok() ? "" : "; " + status.message())};
}

}  // namespace

Training::Training(const core::JobConfig& config, std::uint64_t elements, RunFolder& folder,
                   core::StopSignals& signals, ProgressLine& progress, std::optional<Step> from_step)
    : config_(config),
      elements_(elements),
      folder_(folder),
      signals_(signals),
      progress_(progress),
      from_step_(from_step),
      shards_(shard_addresses(config)) {}

Status Training::run(Summary& summary) {
  auto job =
      LocalJob::start(config_, folder_, from_step_, [this](const std::string& line) { progress_.say(line); });
  if (!job.ok()) return std::move(job).status();
  job_ = *std::move(job);
  Status status = train();
  Summary judged;
  if (status.ok()) status = judge(judged);
  const core::TimePoint now = clock_.now();
  summary = summarise(config_, status_, elements_, seconds_of(ended_.value_or(now) - started_.value_or(now)));
  summary.accuracy = judged.accuracy;
  summary.loss = judged.loss;
  summary.region_accuracy = judged.region_accuracy;
  summary.max_replica_difference = judged.max_replica_difference;
  summary.largest_parameter = judged.largest_parameter;
  summary.workers_lost = workers_lost_;
  summary.restarts = restarts_;
  if (status.ok()) status = leave();
  summary.status = stopping_ ? "stopped" : status.ok() ? "ok" : "failed";
  progress_.clear();
  job_->terminate(kEndGrace);
  return stopping_ ? stopped(status) : status;
}

// Until the last sync is done everywhere.
Status Training::train() {
  core::TimePoint next_look = clock_.now();
  while (true) {
    wait_until(next_look);
    ISTHMUS_RETURN_IF_ERROR(take_signals());
    ISTHMUS_RETURN_IF_ERROR(watch_processes());
    ISTHMUS_RETURN_IF_ERROR(take_answer());
    if (clock_.now() < next_look) continue;
    next_look = clock_.now() + kLookInterval;
    look();
    ISTHMUS_RETURN_IF_ERROR(watch_silence());
    if (status_.answered == status_.shards && status_.phase == proto::PHASE_DRAINED) {
      ended_ = clock_.now();
      return {};
    }
    ask_for_evaluation();
  }
}

void Training::wait_until(core::TimePoint time) {
  std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0}, {job_->evaluator().fd(), POLLIN, 0}};
  for (const LocalJob::Member& member : job_->members()) {
    if (!member.ending) entries.push_back({member.process.exit_fd(), POLLIN, 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - clock_.now()).count();
  if (left > 0) (void)::poll(entries.data(), entries.size(), static_cast<int>(left));
}

Status Training::take_signals() {
  const bool again = stopping_.has_value();
  if (signals_.take()) {
    if (again) return {ErrorCode::kCancelled, "stopped by a second signal"};
    stopping_ = clock_.now();
    progress_.say("stopping: the last sync, then the end (once more to end at once)");
    stop_training();
  }
  if (stopping_ && clock_.now() - *stopping_ >= kStopGrace)
    return {ErrorCode::kCancelled, "stopped by a signal; the last sync could not be done in time"};
  return {};
}

// look() repeats it: a shard that was not there yet, or busy, must not train on.
void Training::stop_training() {
  stop_wanted_ = true;
  (void)worker::control(shards_, proto::CONTROL_STOP, kStatusTimeout);
}

Status Training::watch_processes() {
  for (LocalJob::Member* member : job_->reap()) {
    if (!member->server && member->ending->ok()) continue;
    // A worker that a stop overtook on its way in is refused; it is not lost.
    if (!member->server && stopping_ && member->ending->signal == 0) continue;
    const std::string text = how_it_ended(member->process, kLogLines);
    if (may_start_again(*member)) {
      progress_.say(text + "\n" + member->process.name() + " is started again");
      ISTHMUS_RETURN_IF_ERROR(start_again(*member));
      continue;
    }
    if (member->server) return {code_of(*member->ending), text};
    ++workers_lost_;
    const bool last = ++lost_in_[member->region] == config_.regions[member->region].workers;
    if (!last) progress_.say(text);
    if (last)
      return {code_of(*member->ending),
              "region " + config_.regions[member->region].name + " has lost all its workers, last " + text};
  }
  return {};
}

bool Training::may_start_again(const LocalJob::Member& member) const {
  if (!config_.checkpoint || restarts_in_vain_ >= kMostRestartsInVain) return false;
  if (!member.server && (stop_wanted_ || status_.phase >= proto::PHASE_DRAINING)) return false;
  // What would end the same way is not tried again: a config that is refused, a job that has failed.
  const Ending& ending = *member.ending;
  return ending.signal != 0 || ending.exit_code == core::kExitConnection ||
         ending.exit_code == core::kExitTimeout || ending.exit_code == core::kExitInternal;
}

Status Training::start_again(LocalJob::Member& member) {
  ++restarts_;
  ++restarts_in_vain_;
  return job_->start_again(member);
}

void Training::look() {
  std::vector<proto::StatusReply> replies;
  for (auto& reply : worker::status(shards_, kStatusTimeout)) {
    if (reply.ok()) replies.push_back(*std::move(reply));
  }
  const core::TimePoint now = clock_.now();
  JobStatus status = job_status(config_, replies);
  if (status.answered == status.shards) answered_ = now;
  // A server that went back to its checkpoint may not know that its workers are done.
  if (job_->workers_ended()) stop_wanted_ = true;
  if (stop_wanted_ && status.phase < proto::PHASE_DRAINING) stop_training();
  // A shard that is busy for a moment must not look like one that was set back.
  if (status.answered < status_.answered) return;
  const bool began = std::any_of(status.regions.begin(), status.regions.end(), [](const RegionState& region) {
    return region.phase != proto::PHASE_WAITING;
  });
  if (!started_ && began) started_ = looked_.value_or(now);
  if (looked_) {
    const Rates rates = rates_between(status_, status, now - *looked_);
    progress_.show(progress_text(config_, status, rates, judged_, now - started_.value_or(now)), now);
    if (started_) write_metrics(status, rates, now);
  }
  looked_ = now;
  if (status.clock > furthest_) {
    furthest_ = status.clock;
    restarts_in_vain_ = 0;
  }
  status_ = std::move(status);
}

Status Training::watch_silence() const {
  if (!job_->workers_ended() || clock_.now() - answered_ < config_.limits.operation_timeout) return {};
  return {ErrorCode::kTimeout, "a server has not answered for limits.operation_timeout; see the logs in " +
                                   folder_.path().string()};
}

void Training::write_metrics(const JobStatus& status, const Rates& rates, core::TimePoint now) {
  nlohmann::ordered_json links;
  for (const DirectedLink& link : status.links)
    links[link.from + "->" + link.to] = {{"bytes", link.bytes}, {"up", link.up == link.links}};
  note_metrics({{"seconds", seconds_of(now - *started_)},
                {"phase", to_string(status.phase)},
                {"step", status.clock},
                {"samples_per_second", rates.samples_per_second},
                {"lan_bytes", status.lan_bytes},
                {"wan", links},
                {"staleness_p50", percentile(status.staleness, 0.5).value_or(0)}});
}

// A run goes on when its folder's disk is full; it is said once.
void Training::note_metrics(const nlohmann::ordered_json& json) {
  if (metrics_failed_) return;
  if (const Status status = folder_.append_metrics(json.dump()); !status.ok()) {
    metrics_failed_ = true;
    progress_.say(status.to_string() + "; the run goes on without metrics");
  }
}

void Training::ask_for_evaluation() {
  const Step every = config_.trainer.evaluate_every;
  if (config_.trainer.model == "synthetic" || every == 0 || status_.phase != proto::PHASE_TRAINING) return;
  if (status_.clock < next_evaluation_ + every || job_->evaluator().busy()) return;
  next_evaluation_ = status_.clock / every * every;
  job_->evaluator().ask("shared " + config_.regions[0].name);
}

// One that could not be given is asked for again later; a judge who is gone would never end a job that is to
// end at an accuracy.
Status Training::take_answer() {
  const auto answer = job_->evaluator().take();
  if (job_->evaluator().gone()) return answer->status();
  if (!answer || !answer->ok() || !started_) return {};
  judged_ = Judged{(*answer)->step, (*answer)->accuracy, (*answer)->loss};
  note_metrics({{"seconds", seconds_of(clock_.now() - *started_)},
                {"step", judged_->step},
                {"accuracy", judged_->accuracy},
                {"loss", judged_->loss}});
  const auto& wanted = config_.trainer.stop.accuracy;
  if (wanted && judged_->accuracy >= *wanted) stop_training();
  return {};
}

Result<EvaluatorProcess::Answer> Training::ask_and_wait(const std::string& request) {
  EvaluatorProcess& evaluator = job_->evaluator();
  const core::TimePoint until = clock_.now() + config_.limits.operation_timeout;
  bool asked = false;
  while (clock_.now() < until) {
    if (auto answer = evaluator.take(); answer && (asked || evaluator.gone())) return *std::move(answer);
    if (!asked && !evaluator.busy()) {
      evaluator.ask(request);
      asked = true;
    }
    if (signals_.take()) {
      stopping_ = clock_.now();
      return Status(ErrorCode::kCancelled, "stopped by a signal");
    }
    pollfd entries[] = {{signals_.fd(), POLLIN, 0}, {evaluator.fd(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.now()).count();
    if (left > 0) (void)::poll(entries, 2, static_cast<int>(left));
  }
  return Status(ErrorCode::kTimeout, "the evaluator did not answer '" + request + "'");
}

Status Training::judge(Summary& summary) {
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
  if (!status_.last_sync_without.empty()) {
    std::string names;
    for (const std::string& name : status_.last_sync_without) names += (names.empty() ? "" : ", ") + name;
    return {ErrorCode::kFailed, "the last sync was done without " + names +
                                    ", which was out of reach for limits.operation_timeout; the regions' "
                                    "parameters differ by up to " +
                                    std::to_string(agreement->difference)};
  }
  if (agreement->difference > kAgreed * agreement->largest)
    return {ErrorCode::kInternal, "the regions' parameters differ by " +
                                      std::to_string(agreement->difference) + " after the last sync"};
  return {};
}

// Tells the servers to exit and waits until they have.
Status Training::leave() {
  for (const Status& status : worker::control(shards_, proto::CONTROL_EXIT, kStatusTimeout)) (void)status;
  const core::TimePoint until = clock_.now() + kExitGrace;
  while (!job_->servers_ended() && clock_.now() < until) {
    wait_until(until);
    for (LocalJob::Member* member : job_->reap()) {
      if (member->server && !member->ending->ok())
        return {code_of(*member->ending), how_it_ended(member->process, kLogLines)};
    }
    if (signals_.take()) break;
  }
  return {};
}

}  // namespace isthmus::apps
