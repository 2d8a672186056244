// A worker that learns nothing: gradients known in advance, at a pace known in advance. Tests count with
// it, sanitizers run it (it needs no libtorch), benchmarks load servers with it.
//
// Threads: belongs to the worker's thread.
// Memory:  the table.
// Errors:  compute() is kCancelled once `stop` is asked for.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/job_config.h"
#include "trainer/split.h"
#include "trainer/workload.h"

namespace isthmus::models {

// Waits until `deadline`, sleeping or (`spin`) computing. False if `stop` was asked for first.
bool pace_until(std::chrono::steady_clock::time_point deadline, bool spin, const std::stop_token& stop);

// Parameters start at zero. Every gradient is `synthetic.gradient` in each element, but worker 0 of the
// job computes NaN in its step number `synthetic.nan_at_step` (its first step is number 1).
class SyntheticWorkload final : public Workload {
 public:
  static Result<std::unique_ptr<SyntheticWorkload>> create(const core::TrainerConfig& config,
                                                           WorkerPlace place, std::stop_token stop);

  std::span<const TensorSpec> table() const noexcept override { return table_; }
  void initial(std::uint64_t seed, std::span<const TensorView> parameters) const override;
  std::uint32_t samples() const noexcept override { return samples_; }

  // Takes `synthetic.step_time`; the loss is the first parameter.
  Result<float> compute(Step finished, std::span<const ConstTensorView> parameters,
                        std::span<const TensorView> gradients) override;

  // Nothing to be right about: accuracy 0, the loss as in compute(), no samples.
  Result<Evaluation> evaluate(std::span<const ConstTensorView> parameters) override;

 private:
  SyntheticWorkload(std::vector<TensorSpec> table, const core::TrainerConfig& config, WorkerPlace place,
                    std::stop_token stop);

  const std::vector<TensorSpec> table_;
  const core::SyntheticConfig config_;
  const std::uint32_t samples_;
  const WorkerPlace place_;
  const std::stop_token stop_;
};

}  // namespace isthmus::models
