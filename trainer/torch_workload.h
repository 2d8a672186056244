// A worker that trains one of the reference models on its part of the data set.
//
// Threads: belongs to the worker's thread.
// Memory:  the data set, and one batch.
// Errors:  create() passes on what the model, the data set and the split have to say.

#pragma once

#include <memory>
#include <span>

#include "core/job_config.h"
#include "trainer/dataset.h"
#include "trainer/split.h"
#include "trainer/torch_model.h"
#include "trainer/workload.h"

namespace isthmus::models {

class TorchWorkload final : public Workload {
 public:
  // `seed` is the job's: it decides the split and the order of the samples.
  static Result<std::unique_ptr<TorchWorkload>> create(const core::TrainerConfig& config, WorkerPlace place,
                                                       std::uint64_t seed);

  std::span<const TensorSpec> table() const noexcept override { return model_->table(); }
  void initial(std::uint64_t seed, std::span<const TensorView> parameters) const override;
  std::uint32_t samples() const noexcept override { return batch_size_; }
  Result<float> compute(Step finished, std::span<const ConstTensorView> parameters,
                        std::span<const TensorView> gradients) override;
  Result<Evaluation> evaluate(std::span<const ConstTensorView> parameters) override;

 private:
  TorchWorkload(std::unique_ptr<TorchModel> model, DataSet data, BatchSampler sampler,
                std::uint32_t batch_size);

  const std::unique_ptr<TorchModel> model_;
  const DataSet data_;
  BatchSampler sampler_;
  const std::uint32_t batch_size_;
  Batch batch_;
};

}  // namespace isthmus::models
