// How a session gets into its shards, and in again.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "worker/session.h"

namespace isthmus::worker {
namespace {

using proto::Kind;

constexpr core::Duration kHelloInterval = std::chrono::milliseconds(500);
constexpr auto kAllRequests = std::numeric_limits<std::uint64_t>::max();

ErrorCode code_of(proto::RefuseReason reason) {
  switch (reason) {
    case proto::REFUSE_NOT_MEMBER:
    case proto::REFUSE_NOT_READY: return ErrorCode::kUnavailable;
    case proto::REFUSE_FAILED: return ErrorCode::kFailed;
    default: return ErrorCode::kRefused;
  }
}

}  // namespace

void Session::on_refuse(std::uint32_t shard, const proto::Message& message, core::TimePoint now) {
  const auto refuse = proto::parse_meta<proto::Refuse>(message);
  if (!refuse.ok()) return on_bad_message(shard, refuse.status());
  Membership& there = shards_[shard];
  const std::uint64_t id = message.request_id;
  const auto found = in_flight_.find(id);
  const bool ours = found != in_flight_.end() && found->second.part->shard == shard;
  const bool unknown = refuse->reason() == proto::REFUSE_NOT_MEMBER;
  const Status why = at(shard, code_of(refuse->reason()), refuse->text());
  if (!ours && there.is_since_hello(id)) {
    // After a clock was set back, an earlier process of this worker looks like a later one until its lease is
    // over. Who has been a member before has really been replaced.
    const bool may_pass = why.code() == ErrorCode::kUnavailable ||
                          (refuse->reason() == proto::REFUSE_EPOCH && join_ != nullptr);
    return on_hello_refused(shard, why, id, may_pass);
  }
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

void Session::on_hello_refused(std::uint32_t shard, const Status& why, std::uint64_t request_id,
                               bool may_pass) {
  if (may_pass) {
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
    return on_hello_refused(shard, at(shard, welcome.status().code(), welcome.status().message()), id,
                            welcome.status().code() == ErrorCode::kUnavailable);
  there.welcome(id, now, heartbeat_interval(welcome->lease_ms(), options_.timeout));
  there.position = welcome->start_step();
  Step most = step();
  for (const Membership& each : shards_) most = std::max(most, each.position);
  step_.store(most, std::memory_order_relaxed);
  if (!join_) {
    versions_.forget(shard);
    catch_up();
    const char* const what = welcome->initialized()
                                 ? "lost its lease, rejoined; pull and go on"
                                 : "lost its lease, rejoined a shard without values; create and go on";
    return fail_all(shard, id, at(shard, ErrorCode::kUnavailable, what));
  }
  join_->parts[shard].reply = std::move(message);
  if (!std::all_of(shards_.begin(), shards_.end(), [](const Membership& s) { return s.joined(); })) return;
  catch_up();
  std::exchange(join_, nullptr)->end({});
}

// The clocks of shards move one after the other, so they let us in at different steps; and a shard that has
// restarted may know an older one. A step is the same everywhere, so shards that are behind are told of the
// steps in between. Their answers, which may have to wait for others, matter to nobody.
void Session::catch_up() {
  if (!options_.is_worker() || leaving_) return;
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
    Membership& there = shards_[shard];
    while (there.joined() && there.position < step()) {
      proto::NextStep meta;
      meta.set_step(there.position + 1);
      if (!send_(shard, proto::make_message(Kind::kNextStep, next_id_++, meta)).ok())
        break;  // tick() goes on.
      ++there.position;
    }
  }
}

}  // namespace isthmus::worker
