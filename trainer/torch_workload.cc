#include "trainer/torch_workload.h"

#include <string>
#include <utility>
#include <vector>

#include "trainer/model_table.h"

namespace isthmus::models {

Result<std::unique_ptr<TorchWorkload>> TorchWorkload::create(const core::TrainerConfig& config,
                                                             WorkerPlace place, std::uint64_t seed) {
  if (config.batch == 0) return Status(ErrorCode::kInvalidArgument, "trainer.batch: not at least 1");
  Result<std::unique_ptr<TorchModel>> model = TorchModel::create(config);
  if (!model.ok()) return model.status();
  Result<DataSet> data = load_dataset(config);
  if (!data.ok()) return data.status();
  auto parts = split_samples(data->train.labels(), config.data, seed, place.workers);
  if (!parts.ok()) return parts.status();
  if (place.worker >= parts->size())
    return Status(ErrorCode::kInvalidArgument, "the job has no worker " + std::to_string(place.worker));
  BatchSampler sampler(std::move((*parts)[place.worker]), config.batch, seed, place.worker);
  return std::unique_ptr<TorchWorkload>(
      new TorchWorkload(*std::move(model), *std::move(data), std::move(sampler), config.batch));
}

TorchWorkload::TorchWorkload(std::unique_ptr<TorchModel> model, DataSet data, BatchSampler sampler,
                             std::uint32_t batch_size)
    : model_(std::move(model)),
      data_(std::move(data)),
      sampler_(std::move(sampler)),
      batch_size_(batch_size) {}

void TorchWorkload::initial(std::uint64_t seed, std::span<const TensorView> parameters) const {
  initial_parameters(table(), seed, parameters);
}

Result<float> TorchWorkload::compute(Step finished, std::span<const ConstTensorView> parameters,
                                     std::span<const TensorView> gradients) {
  data_.train.gather(sampler_.batch_indices(finished), batch_);
  return model_->loss_and_gradient(batch_, parameters, gradients);
}

Result<Evaluation> TorchWorkload::evaluate(std::span<const ConstTensorView> parameters) {
  return model_->evaluate(data_.held_out, parameters);
}

}  // namespace isthmus::models
