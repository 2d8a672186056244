#include "worker/session.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace isthmus::worker {
namespace {

using namespace std::chrono_literals;
using proto::Kind;

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
  if (kind == Kind::kSnapshot) give_up_snapshot();
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
    *meta.mutable_times() = operation->times;
    part.meta = meta.SerializeAsString();
    shards_[part.shard].position = operation->step;
  }
  const std::uint64_t id = next_id_++;
  Status sent = send_(part.shard, {operation->kind, id, std::move(part.meta), std::move(part.payload)});
  if (!sent.ok()) return fail(operation, std::move(sent).with_context(options_.shards[part.shard]));
  in_flight_.emplace(id, Entry{operation, &part, now});
  ++shards_[part.shard].requests;
}

// Shards keep one question for a snapshot a client, the last.
void Session::give_up_snapshot() {
  const auto old = std::find_if(in_flight_.begin(), in_flight_.end(), [](const auto& each) {
    return each.second.operation->kind == Kind::kSnapshot;
  });
  if (old != in_flight_.end())
    fail(old->second.operation, {ErrorCode::kCancelled, "this client has asked for another snapshot"});
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
  operation->answer(*found->second.part, std::move(message));
  in_flight_.erase(found);
  --shards_[shard].requests;
  if (operation->kind == Kind::kLeave) shards_[shard].leave();
  if (operation->all_answered()) finish(operation);
}

void Session::finish(const OperationPtr& operation) {
  if (operation->kind != Kind::kNextStep) return operation->end({});
  for (const Part& part : operation->parts) {
    const auto reply = proto::parse_meta<proto::NextStepReply>(part.reply);
    if (!reply.ok()) return operation->end(at(part.shard, ErrorCode::kProtocol, reply.status().message()));
    if (reply->stop()) return operation->end({ErrorCode::kCancelled, "the job ends"});
  }
  step_.store(operation->step, std::memory_order_relaxed);
  operation->end({});
}

// ---- Time -------------------------------------------------------------------------------------------

void Session::tick(core::TimePoint now) {
  if (!ended_.ok()) return;
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
    if (shards_[shard].hello_due(now)) say_hello(shard, now);
    if (shards_[shard].take_heartbeat(options_.is_worker(), now))
      (void)send_(shard, proto::make_message(Kind::kHeartbeat, next_id_++, proto::Heartbeat()));
  }
  if (!join_) catch_up();
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
