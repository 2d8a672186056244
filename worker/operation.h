// One operation of a client: messages to the shards that it concerns, their answers, and how it ended.
//
// Threads: made by a caller, then owned by the I/O thread until done; from then on by whoever waits. An
//          answered part belongs to whoever waits at once. `done` may be read by any thread.
// Memory:  what is pushed until it has left, what is pulled until wait() has decoded it.
// Errors:  decode_replies() treats the answers as hostile: kProtocol, kCorruption.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/job_config.h"
#include "core/layout.h"
#include "core/mailbox.h"
#include "isthmus/client.h"
#include "proto/frame.h"
#include "proto/isthmus.pb.h"
#include "worker/step_timer.h"

namespace isthmus::worker {

using Operation = Pending::State;
using OperationPtr = std::shared_ptr<Operation>;

// What a caller tells the I/O thread.
struct Submit {
  OperationPtr operation;
};
struct Cancel {
  std::weak_ptr<Operation> operation;  // Weak: the inbox of a client that has gone must not keep it.
};
// `view` now holds this version of a slice.
struct Held {
  core::SliceId slice = 0;
  const float* view = nullptr;
  std::uint64_t version = 0;
  std::uint64_t membership = 0;  // See Part.
};
struct Decoded {
  std::vector<Held> slices;
};
using Command = std::variant<Submit, Cancel, Decoded>;
using Inbox = core::Mailbox<Command>;

// Where a pulled slice goes.
struct Target {
  core::SliceId slice = 0;
  TensorView to;
};

// One message, and its answer.
struct Part {
  std::uint32_t shard = 0;
  std::string meta;                        // For kinds whose meta the caller knows.
  proto::PushPull push_pull;               // For kPushPull: the I/O thread adds step and versions.
  std::vector<Target> targets;             // Beside push_pull.pull(), by ascending slice.
  std::vector<core::SharedBytes> payload;  // Gone once sent.
  std::uint64_t membership = 0;  // The client's how-manieth at this shard: versions hold within one.
  proto::Message reply;
};

}  // namespace isthmus::worker

struct isthmus::Pending::State {
  // A request of `kind`, not yet submitted.
  State(proto::Kind kind_of_request, core::Duration time_limit, std::shared_ptr<worker::Inbox> to)
      : kind(kind_of_request), limit(time_limit), inbox(std::move(to)) {}

  // The I/O thread: the answer to one of `parts`.
  void answer(const worker::Part& part, proto::Message reply);
  bool all_answered() const noexcept { return answered.size() == parts.size(); }
  // The I/O thread, or a caller that submits nothing: the end. Everything written before is then visible to
  // whoever sees `done`.
  void end(Status how);
  // Whoever waits: the next answered part, in the order of the answers; `seen` have been. nullptr: that was
  // the last.
  const worker::Part* next_answered(std::size_t seen);
  void block_until_done() const noexcept { done.wait(false, std::memory_order_acquire); }

  const proto::Kind kind;
  const core::Duration limit;
  const std::shared_ptr<worker::Inbox> inbox;
  std::vector<worker::Part> parts;
  Step step = 0;                             // kNextStep: the one asked for, ...
  proto::StepTimes times;                    // ... and what the one before cost.
  std::shared_ptr<worker::StepTimer> timer;  // Of whoever waits; may be empty.
  core::TimePoint started;
  Status status;
  std::atomic<bool> done{false};

 private:
  std::vector<const worker::Part*> answered;  // Of room for all, so that the I/O thread moves nothing.
  std::atomic<std::size_t> answers{0};        // What of it may be read by others.
  std::atomic<std::uint32_t> news{0};         // Counts answers and the end.
};

namespace isthmus::worker {

// Decodes what a kPushPull pulled into its views as it comes, until the end; gives what they hold then, or
// how it ended. Of what fails some views may have been filled.
Result<std::vector<Held>> decode_replies(Operation& operation);

}  // namespace isthmus::worker
