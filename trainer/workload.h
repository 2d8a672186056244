// What a worker computes. The worker's loop knows this and a Client, and nothing of models or data:
//
//   pull the parameters; gradients = compute(step, parameters); push them with samples(); next step
//
// Threads: a Workload belongs to the worker's thread.
// Memory:  parameters and gradients are the caller's, one view a tensor in the table's order. They are
//   only touched during the call.
// Errors:  a Status ends the worker; a gradient that is not finite is not an error here (the server
//   refuses it).

#pragma once

#include <cstdint>
#include <span>

#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::models {

struct Evaluation {
  double accuracy = 0;        // Share of right answers, in [0, 1].
  double loss = 0;            // Mean.
  std::uint64_t samples = 0;  // Judged.
};

class Workload {
 public:
  virtual ~Workload() = default;

  virtual std::span<const TensorSpec> table() const noexcept = 0;

  // The parameters a job with this seed starts from: the same for every worker of it.
  virtual void initial(std::uint64_t seed, std::span<const TensorView> parameters) const = 0;

  // How many samples one step's gradient is the mean of: its weight.
  virtual std::uint32_t samples() const noexcept = 0;

  // Fills the gradients of the step that follows `finished` finished ones; returns the loss. The same
  // (finished, parameters) give the same gradients, whatever was computed before.
  virtual Result<float> compute(Step finished, std::span<const ConstTensorView> parameters,
                                std::span<const TensorView> gradients) = 0;

  // Judges the parameters on the held-out samples.
  virtual Result<Evaluation> evaluate(std::span<const ConstTensorView> parameters) = 0;
};

}  // namespace isthmus::models
