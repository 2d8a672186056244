#include "worker/session.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace isthmus::worker {
namespace {

using namespace std::chrono_literals;
using proto::Kind;

constexpr core::Duration kHelloInterval = 500ms;
constexpr auto kNever = core::TimePoint::max();
constexpr auto kAllRequests = std::numeric_limits<std::uint64_t>::max();

Kind reply_to(Kind kind) {
  switch (kind) {
    case Kind::kInitialize: return Kind::kInitializeReply;
    case Kind::kPushPull: return Kind::kPushPullReply;
    case Kind::kNextStep: return Kind::kNextStepReply;
    case Kind::kLeave: return Kind::kLeaveReply;
    default: return Kind::kSnapshotReply;
  }
}

// "30 s", "50 ms"
std::string text_of(core::Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

// `from` + `by`, without overflow for a limit that means "for ever".
core::TimePoint after(core::TimePoint from, core::Duration by) {
  return by >= kNever - from ? kNever : from + by;
}

}  // namespace

Session::Session(SessionOptions options, Send send)
    : options_(std::move(options)),
      send_(std::move(send)),
      versions_(options_.shards.size()),
      shards_(options_.shards.size()),
      jitter_(static_cast<std::minstd_rand::result_type>(options_.hello.incarnation())) {}

// ---- What callers ask -------------------------------------------------------------------------------

void Session::submit(OperationPtr operation, core::TimePoint now) {
  if (!ended_.ok()) return operation->end(ended_);
  operation->started = now;
  const Kind kind = operation->kind;
  if (kind == Kind::kHello) {
    join_ = std::move(operation);
    for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) say_hello(shard, now);
    return;
  }
  if (leaving_ && kind != Kind::kLeave && kind != Kind::kSnapshot)
    return operation->end({ErrorCode::kInvalidArgument, "this worker has left the job: finish() was called"});
  if (kind == Kind::kLeave) leaving_ = true;
  if (kind == Kind::kNextStep) operation->step = step() + 1;
  for (Part& part : operation->parts) {
    send_part(operation, part, now);
    if (operation->done.load(std::memory_order_relaxed)) return;
  }
  if (operation->parts.empty()) operation->end({});
}

void Session::send_part(const OperationPtr& operation, Part& part, core::TimePoint now) {
  if (operation->kind == Kind::kPushPull) {
    part.push_pull.set_step(step());
    versions_.complete(part);
    part.meta = part.push_pull.SerializeAsString();
  } else if (operation->kind == Kind::kNextStep) {
    proto::NextStep meta;
    meta.set_step(operation->step);
    part.meta = meta.SerializeAsString();
  }
  const std::uint64_t id = next_id_++;
  Status sent = send_(part.shard, {operation->kind, id, std::move(part.meta), std::move(part.payload)});
  if (!sent.ok()) return fail(operation, std::move(sent).with_context(options_.shards[part.shard]));
  in_flight_.emplace(id, Entry{operation, &part, now});
  ++shards_[part.shard].requests;
}

void Session::cancel(const OperationPtr& operation) { forget(operation); }

void Session::forget(const OperationPtr& operation) {
  for (auto entry = in_flight_.begin(); entry != in_flight_.end();) {
    if (entry->second.operation != operation) {
      ++entry;
      continue;
    }
    --shards_[entry->second.part->shard].requests;
    entry = in_flight_.erase(entry);
  }
  if (join_ == operation) join_ = nullptr;
}

void Session::fail(OperationPtr operation, Status why) {
  forget(operation);
  operation->end(std::move(why));
}

void Session::fail_all(std::uint32_t shard, std::uint64_t before_id, const Status& why) {
  std::vector<OperationPtr> failed;
  for (const auto& [id, entry] : in_flight_) {
    if (id >= before_id) break;
    if (entry.part->shard == shard) failed.push_back(entry.operation);
  }
  for (OperationPtr& operation : failed) fail(std::move(operation), why);
}

void Session::end(Status why) {
  if (!ended_.ok()) return;
  ended_ = std::move(why);
  if (join_) fail(join_, ended_);
  while (!in_flight_.empty()) fail(in_flight_.begin()->second.operation, ended_);
  if (!options_.is_worker() || leaving_) return;
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
    if (shards_[shard].joined())
      (void)send_(shard, proto::make_message(Kind::kLeave, next_id_++, proto::Leave()));
  }
}

// ---- What shards say --------------------------------------------------------------------------------

void Session::on_message(std::uint32_t shard, proto::Message&& message, core::TimePoint now) {
  if (!ended_.ok()) return;
  shards_[shard].heard(now);
  switch (message.kind) {
    case Kind::kHeartbeat: return;
    case Kind::kWelcome: return on_welcome(shard, std::move(message), now);
    case Kind::kRefuse: return on_refuse(shard, message, now);
    default: return on_reply(shard, std::move(message));
  }
}

void Session::on_bad_message(std::uint32_t shard, const Status& why) {
  Status named = Status(why).with_context(options_.shards[shard]);
  log(named.message());
  if (join_ && shards_[shard].joining()) fail(join_, named);
  fail_all(shard, kAllRequests, named);
}

void Session::on_reply(std::uint32_t shard, proto::Message&& message) {
  const auto found = in_flight_.find(message.request_id);
  if (found == in_flight_.end() || found->second.part->shard != shard) return;  // Late, or cancelled.
  const OperationPtr operation = found->second.operation;
  if (message.kind != reply_to(operation->kind))
    return fail(operation, at(shard, ErrorCode::kProtocol,
                              "answered a " + std::string(to_string(operation->kind)) + " with a " +
                                  std::string(to_string(message.kind))));
  Part& part = *found->second.part;
  part.reply = std::move(message);
  part.answered = true;
  in_flight_.erase(found);
  --shards_[shard].requests;
  if (operation->kind == Kind::kLeave) shards_[shard].leave();
  const auto& parts = operation->parts;
  if (std::all_of(parts.begin(), parts.end(), [](const Part& p) { return p.answered; })) finish(operation);
}

void Session::finish(const OperationPtr& operation) {
  if (operation->kind != Kind::kNextStep) return operation->end({});
  for (const Part& part : operation->parts) {
    const auto reply = proto::parse_meta<proto::NextStepReply>(part.reply);
    if (!reply.ok()) return operation->end(at(part.shard, ErrorCode::kProtocol, reply.status().message()));
    if (reply->stop()) return operation->end({ErrorCode::kCancelled, "the job ends"});
  }
  step_.store(operation->step, std::memory_order_relaxed);
  for (Membership& shard : shards_) shard.start.reset();
  operation->end({});
}

void Session::on_refuse(std::uint32_t shard, const proto::Message& message, core::TimePoint now) {
  const auto refuse = proto::parse_meta<proto::Refuse>(message);
  if (!refuse.ok()) return on_bad_message(shard, refuse.status());
  Membership& there = shards_[shard];
  const std::uint64_t id = message.request_id;
  const auto found = in_flight_.find(id);
  const bool ours = found != in_flight_.end() && found->second.part->shard == shard;
  const bool unknown = refuse->reason() == proto::REFUSE_NOT_MEMBER;
  const bool later = unknown || refuse->reason() == proto::REFUSE_NOT_READY;
  const Status why = at(shard, later ? ErrorCode::kUnavailable : ErrorCode::kRefused, refuse->text());
  if (!ours && there.is_since_hello(id)) return on_hello_refused(shard, why, id);
  // An observer has no lease: a refused heartbeat is as good a sign of life as an echo.
  if (unknown && !leaving_ && (ours || options_.is_worker())) {
    if (there.forgotten(id)) {
      log(why.message() + "; joining again");
      say_hello(shard, now);
    }
    if (there.joining() && !there.is_since_hello(id)) return;  // The welcome ends what was in flight.
  }
  if (ours) fail(found->second.operation, why);
}

// ---- Joining ----------------------------------------------------------------------------------------

void Session::say_hello(std::uint32_t shard, core::TimePoint now) {
  Membership& there = shards_[shard];
  if (there.joining() && !there.told_waiting) {
    there.told_waiting = true;
    log("waiting for " + options_.shards[shard] + (there.why_not.empty() ? "" : ": " + there.why_not));
  }
  // Apart from one another, lest all workers of a region come at once.
  const core::Duration pause = kHelloInterval * (80 + static_cast<long>(jitter_() % 41)) / 100;
  const std::uint64_t id = next_id_++;
  there.say_hello(id, now, pause);
  // A full queue only means that many Hellos wait there already.
  (void)send_(shard, proto::make_message(Kind::kHello, id, options_.hello));
}

void Session::on_hello_refused(std::uint32_t shard, const Status& why, std::uint64_t request_id) {
  if (why.code() == ErrorCode::kUnavailable) {
    shards_[shard].why_not = why.message().substr(options_.shards[shard].size() + 2);
    return;
  }
  if (join_) return fail(join_, why);
  shards_[shard].give_up(request_id);
  log(why.message());
  fail_all(shard, kAllRequests, why);
}

void Session::on_welcome(std::uint32_t shard, proto::Message&& message, core::TimePoint now) {
  Membership& there = shards_[shard];
  const std::uint64_t id = message.request_id;
  if (!there.is_since_hello(id) || id >= next_id_) return;  // The answer to an older Hello.
  const auto welcome = check_welcome(message, shard, shards_.size(), options_.hello.has_layout());
  if (!welcome.ok())
    return on_hello_refused(shard, at(shard, welcome.status().code(), welcome.status().message()), id);
  there.welcome(id, now, heartbeat_interval(welcome->lease_ms(), options_.timeout));
  there.start = welcome->start_step();
  step_.store(step_to_go_on(shards_, step()), std::memory_order_relaxed);
  if (!join_) {
    versions_.forget(shard);
    const char* const what = welcome->initialized()
                                 ? "lost its lease, rejoined; pull and go on"
                                 : "lost its lease, rejoined a shard without values; create and go on";
    return fail_all(shard, id, at(shard, ErrorCode::kUnavailable, what));
  }
  join_->parts[shard].reply = std::move(message);
  join_->parts[shard].answered = true;
  if (!std::all_of(shards_.begin(), shards_.end(), [](const Membership& s) { return s.joined(); })) return;
  for (Membership& each : shards_) each.start.reset();
  std::exchange(join_, nullptr)->end({});
}

// ---- Time -------------------------------------------------------------------------------------------

void Session::tick(core::TimePoint now) {
  if (!ended_.ok()) return;
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
    if (shards_[shard].hello_due(now)) say_hello(shard, now);
    if (shards_[shard].take_heartbeat(options_.is_worker(), now))
      (void)send_(shard, proto::make_message(Kind::kHeartbeat, next_id_++, proto::Heartbeat()));
  }
  check_deadlines(now);
}

core::TimePoint Session::deadline(const Entry& entry) const {
  const core::TimePoint heard = std::max(entry.sent_at, shards_[entry.part->shard].heard_at());
  return std::min(after(heard, options_.timeout), after(entry.operation->started, entry.operation->limit));
}

void Session::check_deadlines(core::TimePoint now) {
  if (join_ && now >= after(join_->started, join_->limit)) {
    const auto missing =
        std::find_if(shards_.begin(), shards_.end(), [](const Membership& s) { return !s.joined(); });
    const auto shard = static_cast<std::uint32_t>(missing - shards_.begin());
    const std::string& why_not = missing->why_not;
    fail(join_, at(shard, ErrorCode::kTimeout,
                   "no welcome within " + text_of(join_->limit) +
                       (why_not.empty() ? "; is it up?" : ": " + why_not)));
  }
  std::vector<std::pair<OperationPtr, Status>> late;
  for (const auto& [id, entry] : in_flight_) {
    if (now < deadline(entry)) continue;
    const bool waited = now >= after(entry.operation->started, entry.operation->limit);
    late.emplace_back(entry.operation,
                      at(entry.part->shard, ErrorCode::kTimeout,
                         waited ? std::string(to_string(entry.operation->kind)) + " not answered within " +
                                      text_of(entry.operation->limit)
                                : "nothing heard for " + text_of(options_.timeout)));
  }
  for (auto& [operation, why] : late) {
    if (!operation->done.load(std::memory_order_relaxed)) fail(operation, std::move(why));
  }
}

core::TimePoint Session::wake_at() const {
  core::TimePoint first = kNever;
  if (!ended_.ok()) return first;
  for (const Membership& shard : shards_) first = std::min(first, shard.wake_at(options_.is_worker()));
  if (join_) first = std::min(first, after(join_->started, join_->limit));
  for (const auto& [id, entry] : in_flight_) first = std::min(first, deadline(entry));
  return first;
}

Status Session::at(std::uint32_t shard, ErrorCode code, std::string what) const {
  return {code, options_.shards[shard] + ": " + std::move(what)};
}

void Session::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

}  // namespace isthmus::worker
