// What a client has asked its shards and what they said: memberships, requests in flight, deadlines.
//
// A shard that does not know us (it restarted, or our lease ended) is told Hello again; what was in flight
// there then fails with kUnavailable, since nobody can tell what became of it. A shard is silent when not
// even heartbeats come back for `timeout`.
//
// Threads: belongs to the I/O thread, but for step(). No socket and no clock: messages, time and operations
//          are handed in.
// Memory:  O(shards + operations in flight).
// Errors:  every operation ends, at its limit at the latest.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "proto/meta.h"
#include "worker/operation.h"
#include "worker/shard_membership.h"
#include "worker/versions.h"

namespace isthmus::worker {

struct SessionOptions {
  proto::Hello hello;
  std::vector<std::string> shards;  // The name of each, for a person.
  core::Duration timeout = std::chrono::seconds(30);
  std::function<void(std::string_view)> log;  // May be empty.

  bool is_worker() const { return hello.role() == proto::ROLE_WORKER; }
};

class Session {
 public:
  using Send = std::function<Status(std::uint32_t shard, proto::Message&& message)>;

  Session(SessionOptions options, Send send);

  // The first one is kHello, with a part for each shard: it ends when all have welcomed us.
  void submit(OperationPtr operation, core::TimePoint now);
  void cancel(const OperationPtr& operation);
  void hold(std::span<const Held> slices) { versions_.hold(slices); }

  void on_message(std::uint32_t shard, proto::Message&& message, core::TimePoint now);
  // Bytes that were no frame: nobody can tell whose answer they were.
  void on_bad_message(std::uint32_t shard, const Status& why);
  // Says what is due: Hello, heartbeats, deadlines.
  void tick(core::TimePoint now);
  // When tick() has something to do.
  core::TimePoint wake_at() const;

  // Ends everything with `why`, now and whatever comes later. A worker that has not left says so.
  void end(Status why);

  Step step() const noexcept { return step_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    OperationPtr operation;
    Part* part;
    core::TimePoint sent_at;
  };

  void send_part(const OperationPtr& operation, Part& part, core::TimePoint now);
  void say_hello(std::uint32_t shard, core::TimePoint now);
  void on_welcome(std::uint32_t shard, proto::Message&& message, core::TimePoint now);
  void on_hello_refused(std::uint32_t shard, const Status& why, std::uint64_t request_id, bool may_pass);
  void on_refuse(std::uint32_t shard, const proto::Message& message, core::TimePoint now);
  void on_reply(std::uint32_t shard, proto::Message&& message);
  void catch_up();
  void give_up_snapshot();
  void finish(const OperationPtr& operation);
  void fail(OperationPtr operation, Status why);
  void fail_all(std::uint32_t shard, std::uint64_t before_id, const Status& why);
  void forget(const OperationPtr& operation);
  void check_deadlines(core::TimePoint now);
  core::TimePoint deadline(const Entry& entry) const;
  Status at(std::uint32_t shard, ErrorCode code, std::string what) const;
  void log(const std::string& line) const;

  SessionOptions options_;
  Send send_;
  Versions versions_;
  std::vector<Membership> shards_;
  std::map<std::uint64_t, Entry> in_flight_;  // By request id.
  OperationPtr join_;                         // Until all shards have welcomed us.
  bool leaving_ = false;
  Status ended_;
  std::uint64_t next_id_ = 1;
  std::minstd_rand jitter_;
  std::atomic<Step> step_{0};
};

}  // namespace isthmus::worker
