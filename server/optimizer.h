// What a commit does to a slice's parameters, given the mean gradient.
//
// Threads: stateless; the state is the caller's.
// Memory:  state_vectors() arrays as long as the slice, zero at the start.
// Errors:  none; gradients are finite (the shard refuses others).
//
// All loops are elementwise and nothing is fused, so the result does not depend on the CPU's vectors.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/job_config.h"

namespace isthmus::server {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual std::size_t state_vectors() const noexcept = 0;

  // parameters and each state vector, in place. `commit` counts from 1 (Adam's bias correction);
  // `learning_rate` is the schedule's value now. All spans have the same length.
  virtual void apply(std::span<float> parameters, std::span<const float> gradient,
                     std::span<std::span<float>> state, float learning_rate, std::uint64_t commit) const = 0;
};

// The rules are PyTorch's (SGD without and with momentum, Adam, AdamW).
std::unique_ptr<const Optimizer> make_optimizer(const core::OptimizerConfig& config);

// The learning rate after `steps` steps of the slowest worker. A schedule of no steps is constant.
float scheduled_learning_rate(const core::OptimizerConfig& config, std::uint64_t steps);

}  // namespace isthmus::server
