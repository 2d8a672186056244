// Where a client stands with one shard.
//
//   joining --Welcome--> joined --LeaveReply--> left
//      ^------NOT_MEMBER----'
//
// Threads: values; they belong to the I/O thread. Time is handed in.
// Memory:  O(1).
// Errors:  check_welcome() gives kProtocol, kRefused for a shard that is not the one we wanted, kUnavailable
//          for one that is not ready yet.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/clock.h"
#include "core/job_config.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"
#include "proto/meta.h"

namespace isthmus::worker {

class Membership {
 public:
  enum class State { kOutside, kJoining, kJoined, kLeft };

  State state() const noexcept { return state_; }
  bool joining() const noexcept { return state_ == State::kJoining; }
  bool joined() const noexcept { return state_ == State::kJoined; }

  // Hello `request_id` is about to be sent, the first of a joining or one more; the next is due after
  // `pause`.
  void say_hello(std::uint64_t request_id, core::TimePoint now, core::Duration pause);
  // True for ids of this joining's Hellos (and of what was sent since).
  bool is_since_hello(std::uint64_t request_id) const { return joining() && request_id >= first_hello_; }
  // The answer to Hello `request_id`: a heartbeat is due `heartbeat` from now.
  void welcome(std::uint64_t request_id, core::TimePoint now, core::Duration heartbeat);
  // The Hello was refused for good: nothing is said until the next request there is refused too.
  void give_up(std::uint64_t request_id);
  void leave() { state_ = State::kLeft; }
  // The shard refused `request_id` for not knowing us. False when that is old news.
  bool forgotten(std::uint64_t request_id) const { return joined() && request_id > welcomed_; }

  void heard(core::TimePoint now) { heard_at_ = now; }
  core::TimePoint heard_at() const { return heard_at_; }

  // A worker keeps its lease; anybody else listens only for answers, to tell a slow shard from a dead one.
  bool wants_heartbeat(bool is_worker) const {
    return !joining() && state_ != State::kOutside && (requests > 0 || (joined() && is_worker));
  }
  bool hello_due(core::TimePoint now) const { return joining() && now >= next_hello_; }
  // True at most once an interval.
  bool take_heartbeat(bool is_worker, core::TimePoint now);
  core::TimePoint wake_at(bool is_worker) const;

  std::size_t requests = 0;   // In flight.
  Step position = 0;          // The step that the shard takes us to compute.
  bool told_waiting = false;  // The user knows that we wait for this one.
  std::string why_not;        // What it last said that it is not ready for.

 private:
  State state_ = State::kOutside;
  std::uint64_t first_hello_ = 0;
  std::uint64_t welcomed_ = 0;
  core::Duration heartbeat_{0};
  core::TimePoint next_hello_;
  core::TimePoint next_heartbeat_;
  core::TimePoint heard_at_;
};

// A Welcome of the shard that we wanted.
Result<proto::Welcome> check_welcome(const proto::Message& message, std::uint32_t shard, std::size_t shards,
                                     bool knows_layout);

// Often enough to keep the lease, if there is one, and to notice silence within `timeout` and a restart
// within half a second.
core::Duration heartbeat_interval(std::uint64_t lease_ms, core::Duration timeout);

}  // namespace isthmus::worker
