// The reference models, computed by libtorch: loss, gradients and evaluation of a table's parameters.
//
// The only header of the torch part, and free of torch's own.
//
// Threads: an object belongs to one thread. create() holds libtorch and its BLAS to one thread for the
//   whole process: workers share machines, and a worker that spreads over all cores slows the others.
// Memory:  torch computes in views of the caller's parameters; gradients are copied out once.
// Errors:  whatever libtorch throws becomes kInternal. Nothing is checked for being finite.

#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"
#include "trainer/dataset.h"
#include "trainer/workload.h"

namespace isthmus::models {

class TorchModel {
 public:
  // kInvalidArgument: not a model that is computed (see model_table.h). kInternal: the table is not what
  // the computation needs; it is tried out on one sample here.
  static Result<std::unique_ptr<TorchModel>> create(const core::TrainerConfig& config);
  ~TorchModel();

  std::span<const TensorSpec> table() const noexcept;

  // The mean loss (cross-entropy) over the batch's targets, and its gradient for each tensor.
  // REQUIRES: one view a tensor of the table, of its size; batch not empty, of the model's kind of data.
  Result<float> loss_and_gradient(const Batch& batch, std::span<const ConstTensorView> parameters,
                                  std::span<const TensorView> gradients);

  // Accuracy and mean loss over the samples; of more than about 10,000 images or 200,000 characters,
  // over so many of them, evenly spread.
  Result<Evaluation> evaluate(const Samples& samples, std::span<const ConstTensorView> parameters);

 private:
  struct Network;
  explicit TorchModel(std::unique_ptr<Network> network);

  std::unique_ptr<Network> network_;
};

}  // namespace isthmus::models
