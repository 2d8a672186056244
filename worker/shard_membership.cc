#include "worker/shard_membership.h"

#include <algorithm>
#include <utility>

namespace isthmus::worker {

void Membership::say_hello(std::uint64_t request_id, core::TimePoint now, core::Duration pause) {
  if (!joining()) {
    state_ = State::kJoining;
    first_hello_ = request_id;
    heard_at_ = now;
    told_waiting = false;
  }
  next_hello_ = now + pause;
}

void Membership::welcome(std::uint64_t request_id, core::TimePoint now, core::Duration heartbeat) {
  state_ = State::kJoined;
  welcomed_ = request_id;
  heartbeat_ = heartbeat;
  next_heartbeat_ = now + heartbeat;
  why_not.clear();
}

void Membership::give_up(std::uint64_t request_id) {
  state_ = State::kJoined;
  welcomed_ = request_id;
}

bool Membership::take_heartbeat(bool is_worker, core::TimePoint now) {
  if (!wants_heartbeat(is_worker) || now < next_heartbeat_) return false;
  next_heartbeat_ = now + heartbeat_;
  return true;
}

core::TimePoint Membership::wake_at(bool is_worker) const {
  if (joining()) return next_hello_;
  return wants_heartbeat(is_worker) ? next_heartbeat_ : core::TimePoint::max();
}

Result<proto::Welcome> check_welcome(const proto::Message& message, std::uint32_t shard, std::size_t shards,
                                     bool knows_layout) {
  auto welcome = proto::parse_meta<proto::Welcome>(message);
  if (!welcome.ok()) return welcome;
  if (welcome->shard() != shard || welcome->shards() != shards)
    return Status(ErrorCode::kRefused, "it is shard " + std::to_string(welcome->shard()) + " of " +
                                           std::to_string(welcome->shards()) + ", not " +
                                           std::to_string(shard) + " of " + std::to_string(shards) +
                                           ": do all processes use the same config?");
  if (!knows_layout && !welcome->has_layout())
    return Status(ErrorCode::kUnavailable, "no worker has told it the job's tensors yet");
  return welcome;
}

core::Duration heartbeat_interval(std::uint64_t lease_ms, core::Duration timeout) {
  constexpr core::Duration kShortest = std::chrono::milliseconds(1);
  // A server that has restarted waits for us to speak.
  constexpr core::Duration kLongest = std::chrono::milliseconds(500);
  core::Duration interval = std::min<core::Duration>(timeout / 4, kLongest);
  constexpr std::uint64_t kLongestLease = std::uint64_t{1} << 40;
  if (lease_ms > 0)
    interval =
        std::min<core::Duration>(interval, std::chrono::milliseconds(std::min(lease_ms, kLongestLease)) / 3);
  return std::max(interval, kShortest);
}

}  // namespace isthmus::worker
