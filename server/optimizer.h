// What a commit does to a slice's parameters, given the mean gradient.
//
// Threads: stateless; the state is the caller's.
// Memory:  state_vectors() arrays as long as the slice, zero at the start: all that an optimizer remembers.
// Errors:  gradients are finite (the shard refuses others); apply() says when parameters no longer are.
//
// Every element is rounded on its own and nothing is fused, so the result does not depend on the CPU's
// vectors.

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

  // parameters and each state vector, in place and in one pass. `commit` counts from 1 (Adam's bias
  // correction); `learning_rate` is the schedule's value now. All spans have the same length. False: a
  // parameter is not finite.
  virtual bool apply(std::span<float> parameters, std::span<const float> gradient,
                     std::span<const std::span<float>> state, float learning_rate,
                     std::uint64_t commit) const = 0;
};

// optimizer_sgd.cc, optimizer_adagrad.cc, optimizer_adam.cc, optimizer_lamb.cc.
std::unique_ptr<const Optimizer> make_optimizer(const core::OptimizerConfig& config);

}  // namespace isthmus::server
