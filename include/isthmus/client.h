// The worker's side of the parameter server: push gradients, pull parameters.
//
// Threads: every method may be called from any thread (pushes with ClientConfig::deep: one at a time).
//   Encoding runs on the thread that calls push(), decoding on the thread that calls wait(); one I/O
//   thread, owned by the Client, moves the bytes.
// Memory:  views must stay valid until the operation's Pending has ended. In flight: one encoded copy of
//   what is pushed and one encoded copy of what is pulled.
// Errors:  network trouble is a Status; nothing here throws or aborts. kRefused: this client does not fit
//   the job (its text says why). kCancelled: the job has ended or the Client is being destroyed.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "isthmus/config.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus {

// One operation in flight. It always ends: in success, in an error, or in kTimeout.
class [[nodiscard]] Pending {
 public:
  struct State;
  explicit Pending(std::shared_ptr<State> state) noexcept;
  Pending(Pending&&) noexcept;
  Pending& operator=(Pending&&) noexcept;
  ~Pending();  // Cancels, then waits until the views are free to reuse.

  bool ready() const noexcept;  // True once wait() would not block.
  Status wait();                // Blocks; for a pull, fills the views. Once only.

 private:
  std::shared_ptr<State> state_;
};

struct Gradient {
  TensorId id;
  ConstTensorView values;  // Row-major, the tensor's number of elements. A mean over the samples.
  // If given, large values may be sent from where they are, without a copy: `owner` is held as long as they
  // are read, and until it is let go nobody may write to them. Copied otherwise.
  std::shared_ptr<const void> owner = {};
};

struct Parameters {
  TensorId id;
  TensorView values;  // Row-major, the tensor's number of elements.
};

// Which values a snapshot() reads.
enum class Snapshot {
  kParameters,      // The region's, now.
  kShared,          // What all regions last agreed on, of one round. With one region: kParameters.
  kOwnBeforeFinal,  // The region's own copy as it was before the last sync.
  kFinal,           // After the last sync; waits for it.
};

class Client {
 public:
  // Joins `config.job` as a worker by connecting to every shard of the region's servers; waits for them
  // to come up. kRefused, kUnavailable, kTimeout, kInvalidArgument.
  static Result<std::unique_ptr<Client>> connect(const ClientConfig& config);

  // Joins as an observer: no lease, no clock, only snapshot(). `config.tensors` may be empty: then the
  // servers' table is taken.
  static Result<std::unique_ptr<Client>> observe(const ClientConfig& config);

  virtual ~Client() = default;

  // The job's tensors, in the order of their ids.
  virtual std::span<const TensorSpec> tensors() const noexcept = 0;

  // Offers initial values for all tensors at once. The first worker's count; the others', and a
  // rejoining worker's, are ignored. Pull after it.
  virtual Status create(std::span<const Gradient> initial) = 0;

  // Adds gradients, each a mean over `samples` samples, to the current step. A tensor counts once in a step:
  // pushed again, it is acknowledged and not applied.
  virtual Pending push(std::span<const Gradient> gradients, std::uint64_t samples) = 0;

  // Reads parameters, no staler than the servers' policy allows. Only slices newer than what was last
  // pulled into the same view travel.
  virtual Pending pull(std::span<const Parameters> parameters) = 0;

  // push() and the pull() that sees it, in one round trip a shard.
  virtual Pending push_pull(std::span<const Gradient> gradients, std::uint64_t samples,
                            std::span<const Parameters> parameters) = 0;

  // Ends the current step. Blocks while this worker is further ahead of the slowest one than the
  // staleness bound allows (bsp: lock-step). kCancelled when the job is told to stop: call finish().
  virtual Status next_step() = 0;

  // The step being computed; a worker that joins late starts at the slowest living worker's.
  virtual Step step() const noexcept = 0;

  // This worker's part of the job is complete. With `wait_for_final`, returns once the last sync is
  // applied and snapshot(kFinal) would not block.
  virtual Status finish(bool wait_for_final) = 0;

  // A consistent copy of all tensors, lossless. Each view filled; the region's clock in *step if given. One
  // at a time: a second one ends the first in kCancelled.
  virtual Status snapshot(Snapshot which, std::span<const Parameters> parameters, Step* step = nullptr) = 0;
};

}  // namespace isthmus
