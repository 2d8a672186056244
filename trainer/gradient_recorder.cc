#include "trainer/gradient_recorder.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "core/safetensors.h"

namespace isthmus::models {

Result<std::unique_ptr<Workload>> GradientRecorder::create(std::unique_ptr<Workload> inner,
                                                           std::filesystem::path folder,
                                                           std::vector<Step> steps) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Status(ErrorCode::kInvalidArgument, folder.string() + ": " + error.message());
  return std::unique_ptr<Workload>(
      new GradientRecorder(std::move(inner), std::move(folder), std::move(steps)));
}

GradientRecorder::GradientRecorder(std::unique_ptr<Workload> inner, std::filesystem::path folder,
                                   std::vector<Step> steps)
    : inner_(std::move(inner)), folder_(std::move(folder)), steps_(std::move(steps)) {}

void GradientRecorder::initial(std::uint64_t seed, std::span<const TensorView> parameters) const {
  inner_->initial(seed, parameters);
}

Result<float> GradientRecorder::compute(Step finished, std::span<const ConstTensorView> parameters,
                                        std::span<const TensorView> gradients) {
  auto loss = inner_->compute(finished, parameters, gradients);
  const Step step = finished + 1;
  if (!loss.ok() || std::ranges::find(steps_, step) == steps_.end()) return loss;
  const std::vector<ConstTensorView> values(gradients.begin(), gradients.end());
  ISTHMUS_RETURN_IF_ERROR(core::write_safetensors(folder_ / ("step-" + std::to_string(step) + ".safetensors"),
                                                  table(), values,
                                                  {{"format", "pt"}, {"step", std::to_string(step)}}));
  return loss;
}

Result<Evaluation> GradientRecorder::evaluate(std::span<const ConstTensorView> parameters) {
  return inner_->evaluate(parameters);
}

}  // namespace isthmus::models
