// Who works for a shard: leases and step clocks. There is no scheduler; each shard keeps its own list, and
// a silent worker leaves every barrier and clock at once.
//
// Threads: belongs to its shard. Time comes in as arguments.
// Memory:  O(workers ever seen).
// Errors:  none; what a worker may not do is in the return values.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/job_config.h"
#include "isthmus/tensor.h"
#include "proto/isthmus.pb.h"
#include "server/commit_policy.h"
#include "server/saved_state.h"

namespace isthmus::server {

struct Member {
  std::uint32_t worker = 0;
  std::uint64_t incarnation = 0;
  std::string peer;   // Where it is reached.
  Step finished = 0;  // Steps; it computes step number `finished` now.
  core::TimePoint heard;
  bool living = false;  // Holds a lease and is not done.
  bool done = false;    // Completed its part of the job.
  std::uint64_t refused = 0;
  Step counted = 0;  // The samples of the steps before it are.
  Pace pace = {};
  proto::StepTimes times = {};  // What it says that its steps cost, in all its lives.
  Step may_run_to = 0;          // Steps: granted by the commit policy beyond its usual bound.
};

class Membership {
 public:
  // The first `expected` workers are waited for, at most `start_grace` after the first one joined.
  Membership(std::uint32_t expected, core::Duration lease, core::Duration start_grace);

  // A worker said Hello. It starts at the slowest living worker's step. nullptr: a later life of the same
  // worker was heard of less than a lease ago. After that it does not count any more: incarnations come from
  // clocks, which may be set back. The pointer lives until the worker joins anew.
  const Member* join(std::uint32_t worker, std::uint64_t incarnation, const std::string& peer,
                     core::TimePoint now);

  // The living member behind a peer, its lease renewed; nullptr: not a member.
  Member* renew(const std::string& peer, core::TimePoint now);

  // REQUIRES: `member` is living. finished only grows.
  void finish_step(Member& member, Step finished, core::TimePoint now);
  void leave(Member& member, bool done);

  // Ends leases that are over; returns the workers that were dropped.
  std::vector<std::uint32_t> expire(core::TimePoint now);
  std::optional<core::TimePoint> next_expiry() const;

  // What a restart must not lose: leases are not in it, everybody has to come anew.
  std::vector<SavedMember> save() const;
  // Workers that were done are not waited for; the others are, as at a start. When all were, they may come
  // back for more steps within the grace, unless the job is `complete`: then the other regions wait for the
  // last sync and for nobody else. REQUIRES: nobody has joined.
  void restore(Step slowest, const std::vector<SavedMember>& saved, core::TimePoint now, bool complete);

  // What a barrier counts: the living, or the expected ones while the job has not started.
  std::size_t barrier_size() const noexcept;
  std::size_t living() const noexcept;
  std::size_t done() const noexcept;
  bool started() const noexcept { return started_; }
  // All who started have left, at least one of them because it was done.
  bool all_done() const noexcept;

  // Whom the others wait for: of those that have finished least, the slowest. nullptr: nobody lives.
  const Member* last() const noexcept;
  // Nobody who lives has finished more.
  bool leads(const Member& member) const noexcept;

  // Steps finished by the slowest living worker; the last known when nobody lives.
  Step slowest() const noexcept { return slowest_; }

  const std::map<std::uint32_t, Member>& members() const noexcept { return members_; }

 private:
  void update();

  const std::uint32_t expected_;
  const core::Duration lease_;
  const core::Duration start_grace_;
  std::map<std::uint32_t, Member> members_;  // By worker: the order in which bsp adds.
  std::map<std::string, std::uint32_t> worker_of_peer_;
  std::optional<core::TimePoint> first_join_;  // Or a restart.
  bool started_ = false;
  Step slowest_ = 0;
};

}  // namespace isthmus::server
