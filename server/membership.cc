#include "server/membership.h"

#include <algorithm>

namespace isthmus::server {

Membership::Membership(std::uint32_t expected, core::Duration lease, core::Duration start_grace)
    : expected_(expected), lease_(lease), start_grace_(start_grace) {}

const Member* Membership::join(std::uint32_t worker, std::uint64_t incarnation, const std::string& peer,
                               core::TimePoint now) {
  Member& member = members_[worker];
  if (member.incarnation > incarnation && now - member.heard < lease_) return nullptr;
  if (!first_join_) first_join_ = now;
  if (!started_ && done() == members_.size()) {
    // A job that had ended goes on: the others come back too.
    for (auto& [index, other] : members_) other.done = false;
  }
  const bool again = member.living && member.incarnation == incarnation;
  if (member.peer != peer) {
    // A peer is one worker; this one was another before.
    if (const auto other = worker_of_peer_.find(peer); other != worker_of_peer_.end()) {
      members_.at(other->second).living = false;
      members_.at(other->second).peer.clear();
    }
    worker_of_peer_.erase(member.peer);
    worker_of_peer_[peer] = worker;
  }
  const std::uint64_t refused = member.refused;
  const proto::StepTimes times = member.times;
  // A repeated Hello of the same life must not set its clock back.
  const Step start = again ? member.finished : slowest_;
  member = {worker, incarnation, peer, start, now, true, false, refused};
  member.times = times;
  update();
  return &member;
}

Member* Membership::renew(const std::string& peer, core::TimePoint now) {
  const auto found = worker_of_peer_.find(peer);
  if (found == worker_of_peer_.end()) return nullptr;
  Member& member = members_.at(found->second);
  if (!member.living) return nullptr;
  member.heard = now;
  return &member;
}

void Membership::finish_step(Member& member, Step finished, core::TimePoint now) {
  if (finished > member.finished) {
    const auto steps = static_cast<std::int64_t>(finished - member.finished);
    if (member.pace.last) member.pace.step_time = (now - *member.pace.last) / steps;
    member.pace.last = now;
    member.finished = finished;
  }
  update();
}

void Membership::leave(Member& member, bool done) {
  member.living = false;
  member.done = done;
  update();
}

std::vector<std::uint32_t> Membership::expire(core::TimePoint now) {
  std::vector<std::uint32_t> dropped;
  for (auto& [worker, member] : members_) {
    if (member.living && now - member.heard >= lease_) {
      member.living = false;
      dropped.push_back(worker);
    }
  }
  if (!started_ && first_join_ && now - *first_join_ >= start_grace_) started_ = true;
  update();
  return dropped;
}

std::vector<SavedMember> Membership::save() const {
  std::vector<SavedMember> saved;
  for (const auto& [worker, member] : members_) saved.push_back({worker, member.incarnation, member.done});
  return saved;
}

void Membership::restore(Step slowest, const std::vector<SavedMember>& saved, core::TimePoint now,
                         bool complete) {
  slowest_ = slowest;
  first_join_ = now;
  for (const SavedMember& each : saved) {
    Member& member = members_[each.worker];
    member.worker = each.worker;
    member.incarnation = each.incarnation;
    member.finished = slowest;
    member.heard = now;  // It may come back; until then an earlier life must not take its place.
    member.done = each.done;
  }
  started_ = complete && done() >= expected_;
}

std::optional<core::TimePoint> Membership::next_expiry() const {
  std::optional<core::TimePoint> next;
  if (!started_ && first_join_) next = *first_join_ + start_grace_;
  for (const auto& [worker, member] : members_) {
    if (member.living && (!next || member.heard + lease_ < *next)) next = member.heard + lease_;
  }
  return next;
}

const Member* Membership::last() const noexcept {
  const Member* last = nullptr;
  for (const auto& [worker, member] : members_) {
    if (!member.living) continue;
    const bool behind = last != nullptr &&
                        (member.finished < last->finished ||
                         (member.finished == last->finished && member.pace.step_time > last->pace.step_time));
    if (last == nullptr || behind) last = &member;
  }
  return last;
}

bool Membership::leads(const Member& member) const noexcept {
  return std::none_of(members_.begin(), members_.end(), [&](const auto& entry) {
    return entry.second.living && entry.second.finished > member.finished;
  });
}

std::size_t Membership::living() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [](const auto& entry) { return entry.second.living; }));
}

std::size_t Membership::done() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [](const auto& entry) { return entry.second.done; }));
}

std::size_t Membership::barrier_size() const noexcept {
  return started_ ? living() : std::max<std::size_t>(living(), expected_);
}

bool Membership::all_done() const noexcept { return started_ && living() == 0 && done() > 0; }

void Membership::update() {
  if (living() > 0 && living() + done() >= expected_) started_ = true;
  if (!started_) return;  // Nobody may run ahead of those still to come.
  std::optional<Step> slowest;
  for (const auto& [worker, member] : members_) {
    if (member.living) slowest = std::min(slowest.value_or(member.finished), member.finished);
  }
  if (slowest) slowest_ = std::max(slowest_, *slowest);
}

}  // namespace isthmus::server
