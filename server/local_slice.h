// A slice as its shard holds it: parameters, optimizer state, and the contributions of the current step.
//
// Threads: belongs to its shard.
// Memory:  parameters, the optimizer's vectors, one encoding a version, under a collecting policy one encoded
//          contribution a worker (held where it was received), else a few bytes a worker. Where delays are
//          compensated, a reference to what each worker has pulled: a version is kept as long as somebody
//          computes from it.
// Errors:  records were checked by the shard before they come here.

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "compression/codec.h"
#include "core/layout.h"
#include "core/versioned_floats.h"
#include "server/commit_policy.h"
#include "server/optimizer.h"
#include "server/saved_state.h"

namespace isthmus::server {

// One worker's gradient for one slice, encoded.
struct WorkerContribution {
  std::uint64_t samples = 1;  // The gradient is a mean over them. At least 1.
  const compression::Codec* codec = nullptr;
  core::SharedBytes record;
  float scale = 1.0f;  // What the gradient is multiplied with.
};

class LocalSlice {
 public:
  // `compensation` (may be nullptr) outlives the slice.
  LocalSlice(const core::Slice& slice, const Optimizer& optimizer,
             const core::CompensationConfig* compensation = nullptr);

  const core::Slice& slice() const noexcept { return slice_; }
  core::VersionedFloats& parameters() noexcept { return parameters_; }
  const core::VersionedFloats& parameters() const noexcept { return parameters_; }

  // Counts the commits and every other change. 0: no values yet.
  std::uint64_t version() const noexcept { return version_; }
  void changed() noexcept { ++version_; }

  // The first step that has not been committed (collecting policies).
  Step committed_step() const noexcept { return committed_step_; }
  std::uint64_t commits() const noexcept { return commits_; }
  // A commit has left a parameter that is not finite. Nothing can be told of such a slice any more.
  bool diverged() const noexcept { return diverged_; }
  // Committed since the last call.
  std::uint64_t take_untold_samples() noexcept { return std::exchange(untold_samples_, 0); }

  // Collecting policies: keeps a worker's contribution to `step`. False: it has one already, or the step
  // is committed.
  bool collect(Step step, std::uint32_t worker, WorkerContribution contribution);
  std::size_t collected(Step step) const noexcept;
  std::vector<Step> collecting() const;  // The steps that something was collected for.
  bool has_collected(Step step, std::uint32_t worker) const noexcept;

  // Folds what was collected for `step`, in the order of the workers: the mean weighted by samples.
  // `scratch` has at least the slice's elements.
  void commit_collected(Step step, const Optimizer& optimizer, float learning_rate, std::span<float> scratch);
  // Other policies: false when this life of the worker has contributed to `step`, or a later one, before.
  bool is_new(std::uint32_t worker, std::uint64_t incarnation, Step step);
  // Folds one contribution of `worker`.
  void commit(std::uint32_t worker, const WorkerContribution& contribution, const Optimizer& optimizer,
              float learning_rate, std::span<float> scratch);
  // The worker has got the parameters as they are now: what its next gradient is computed from. Remembered
  // only where delays are compensated.
  void pulled_by(std::uint32_t worker);
  void forget(std::uint32_t worker) noexcept { pulled_.erase(worker); }
  // Nobody contributed to `step`; it is over all the same.
  void skip(Step step) noexcept { committed_step_ = std::max(committed_step_, step + 1); }

  // The parameters as a record of `codec`, encoded once a version.
  core::SharedBytes encoded(const compression::Codec& codec);

  // What a restart must not lose; the home's part and the samples told elsewhere are RegionSync's. What was
  // collected for a step that is not committed is not in it: the step is computed again.
  SavedSlice save() const;
  // REQUIRES: of a slice of this length, with this optimizer and compensation; before any contribution.
  void restore(const SavedSlice& saved);

 private:
  void apply(const Optimizer& optimizer, std::span<const float> gradient, float learning_rate);

  core::Slice slice_;
  core::VersionedFloats parameters_;
  std::vector<core::VersionedFloats> state_;  // The optimizer's; where compensation is adaptive, one more.
  const core::CompensationConfig* compensation_;
  std::map<std::uint32_t, core::VersionedFloats::Reference> pulled_;  // By worker.
  std::uint64_t version_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t untold_samples_ = 0;
  Step committed_step_ = 0;
  bool diverged_ = false;
  std::map<Step, std::map<std::uint32_t, WorkerContribution>> collected_;
  std::map<std::uint32_t, Pushed> pushed_;  // By worker.
  core::SharedBytes encoded_;
  std::uint64_t encoded_version_ = 0;
};

}  // namespace isthmus::server
