// A workload that keeps some of its gradients: for those who study them, as `isthmus bench codec` does.
//
// Threads: as the workload inside.
// Memory:  none beside it.
// Errors:  a file that cannot be written ends the worker, as any error of compute() does.

#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "isthmus/status.h"
#include "trainer/workload.h"

namespace isthmus::models {

class GradientRecorder final : public Workload {
 public:
  // Writes the gradient of each of these steps (the first is 1) to FOLDER/step-N.safetensors: every tensor as
  // it is pushed, before any codec. Makes the folder. kInvalidArgument when that cannot be done.
  static Result<std::unique_ptr<Workload>> create(std::unique_ptr<Workload> inner,
                                                  std::filesystem::path folder, std::vector<Step> steps);

  std::span<const TensorSpec> table() const noexcept override { return inner_->table(); }
  void initial(std::uint64_t seed, std::span<const TensorView> parameters) const override;
  std::uint32_t samples() const noexcept override { return inner_->samples(); }
  Result<float> compute(Step finished, std::span<const ConstTensorView> parameters,
                        std::span<const TensorView> gradients) override;
  Result<Evaluation> evaluate(std::span<const ConstTensorView> parameters) override;

 private:
  GradientRecorder(std::unique_ptr<Workload> inner, std::filesystem::path folder, std::vector<Step> steps);

  const std::unique_ptr<Workload> inner_;
  const std::filesystem::path folder_;
  const std::vector<Step> steps_;
};

}  // namespace isthmus::models
