// Built from ATen's operators, one header each: the whole of torch takes a minute to compile.

#include "trainer/torch_model.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "trainer/model_table.h"

namespace isthmus::models {
namespace {

using at::Tensor;
using Named = std::map<std::string_view, Tensor>;

// A view of memory that torch must not write to: it has no constant tensors.
template <typename T>
Tensor view_of(const T* data, at::IntArrayRef shape) {
  return at::from_blob(const_cast<T*>(data), shape, at::dtype<T>());
}

std::vector<std::int64_t> torch_shape(const TensorSpec& spec) {
  return {spec.shape.begin(), spec.shape.end()};
}

std::int64_t samples_of(const Batch& batch) { return static_cast<std::int64_t>(batch.samples); }

Tensor layer(const Named& p, const std::string& name, const Tensor& input) {
  return at::linear(input, p.at(name + ".weight"), p.at(name + ".bias"));
}

Tensor mlp_logits(const Named& p, const Batch& batch) {
  Tensor x = view_of(batch.pixels.data(), {samples_of(batch), kImageRows * kImageColumns});
  x = at::relu(layer(p, "fc1", x));
  x = at::relu(layer(p, "fc2", x));
  return layer(p, "fc3", x);
}

Tensor cnn_logits(const Named& p, const Batch& batch) {
  Tensor x = view_of(batch.pixels.data(), {samples_of(batch), 1, kImageRows, kImageColumns});
  for (const std::string name : {"conv1", "conv2"}) {
    x = at::conv2d(x, p.at(name + ".weight"), p.at(name + ".bias"), /*stride=*/1, /*padding=*/1);
    x = at::max_pool2d(at::relu(x), 2);
  }
  return layer(p, "fc2", at::relu(layer(p, "fc1", x.flatten(1))));
}

Tensor charlm_logits(const Named& p, const Batch& batch) {
  const std::int64_t sequence = static_cast<std::int64_t>(batch.tokens.size()) / samples_of(batch);
  const Tensor tokens = view_of(batch.tokens.data(), {samples_of(batch), sequence});
  const std::int64_t hidden = p.at("gru.weight_hh_l0").size(1);
  const Tensor state = at::zeros({1, samples_of(batch), hidden});
  const Tensor outputs = std::get<0>(at::gru(
      at::embedding(p.at("embedding.weight"), tokens), state,
      {p.at("gru.weight_ih_l0"), p.at("gru.weight_hh_l0"), p.at("gru.bias_ih_l0"), p.at("gru.bias_hh_l0")},
      /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0.0, /*train=*/true, /*bidirectional=*/false,
      /*batch_first=*/true));
  return layer(p, "head", outputs.reshape({-1, hidden}));
}

using Logits = Tensor (*)(const Named&, const Batch&);

Logits logits_of(const std::string& model) {
  if (model == "mlp") return mlp_logits;
  if (model == "cnn") return cnn_logits;
  return model == "charlm" ? charlm_logits : nullptr;
}

Tensor targets_of(const Batch& batch) {
  return view_of(batch.targets.data(), {static_cast<std::int64_t>(batch.targets.size())});
}

void hold_to_one_thread() {
  at::set_num_threads(1);
  // torch's setting does not reach OpenBLAS, which need not be the BLAS that this machine has.
  using SetThreads = void (*)(int);
  if (void* symbol = ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"); symbol != nullptr)
    reinterpret_cast<SetThreads>(symbol)(1);
}

// Runs what calls libtorch: its exceptions end here.
template <typename Function>
auto guarded(Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& error) {
    return Status(ErrorCode::kInternal, std::string("libtorch: ") + error.what());
  }
}

Batch one_blank_sample(const core::TrainerConfig& config) {
  Batch batch{.samples = 1, .pixels = {}, .tokens = {}, .targets = {}};
  if (config.model == "charlm") {
    batch.tokens.resize(2);
    batch.targets.resize(2);
  } else {
    batch.pixels.resize(kImageRows * kImageColumns);
    batch.targets.resize(1);
  }
  return batch;
}

// The numbers of at most `most` of `size` samples, evenly spread.
std::vector<std::uint32_t> spread(std::size_t size, std::size_t most) {
  std::vector<std::uint32_t> numbers(std::min(size, most));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::uint32_t>(i * size / numbers.size());
  return numbers;
}

}  // namespace

struct TorchModel::Network {
  std::vector<TensorSpec> table;
  Logits logits;

  void check(std::span<const ConstTensorView> parameters) const {
    ISTHMUS_CHECK(parameters.size() == table.size());
    for (std::size_t i = 0; i < table.size(); ++i) ISTHMUS_CHECK(parameters[i].size() == table[i].elements());
  }

  Named named(std::span<const ConstTensorView> parameters, bool with_gradients) const {
    Named views;
    for (std::size_t i = 0; i < table.size(); ++i) {
      Tensor view = view_of(parameters[i].data(), torch_shape(table[i]));
      views.emplace(table[i].name, view.set_requires_grad(with_gradients));
    }
    return views;
  }
};

TorchModel::TorchModel(std::unique_ptr<Network> network) : network_(std::move(network)) {}
TorchModel::~TorchModel() = default;

std::span<const TensorSpec> TorchModel::table() const noexcept { return network_->table; }

Result<std::unique_ptr<TorchModel>> TorchModel::create(const core::TrainerConfig& config) {
  Result<std::vector<TensorSpec>> table = model_table(config);
  if (!table.ok()) return table.status();
  const Logits logits = logits_of(config.model);
  if (logits == nullptr)
    return Status(ErrorCode::kInvalidArgument,
                  "trainer.model: " + config.model + " is not computed by libtorch");
  hold_to_one_thread();

  std::unique_ptr<TorchModel> model(
      new TorchModel(std::make_unique<Network>(Network{*std::move(table), logits})));
  std::vector<std::vector<float>> zeros;
  for (const TensorSpec& spec : model->table()) zeros.emplace_back(spec.elements());
  const std::vector<ConstTensorView> parameters(zeros.begin(), zeros.end());
  std::vector<std::vector<float>> sinks = zeros;
  const std::vector<TensorView> gradients(sinks.begin(), sinks.end());
  Result<float> loss = model->loss_and_gradient(one_blank_sample(config), parameters, gradients);
  if (!loss.ok()) return std::move(loss).status().with_context("the table of " + config.model);
  return model;
}

Result<float> TorchModel::loss_and_gradient(const Batch& batch, std::span<const ConstTensorView> parameters,
                                            std::span<const TensorView> gradients) {
  network_->check(parameters);
  ISTHMUS_CHECK(gradients.size() == parameters.size() && batch.samples > 0);
  return guarded([&]() -> Result<float> {
    const Named views = network_->named(parameters, /*with_gradients=*/true);
    const Tensor loss = at::cross_entropy_loss(network_->logits(views, batch), targets_of(batch));
    loss.backward();
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const TensorSpec& spec = network_->table[i];
      ISTHMUS_CHECK(gradients[i].size() == spec.elements());
      const Tensor& gradient = views.at(spec.name).grad();
      if (!gradient.defined())
        return Status(ErrorCode::kInternal, "the loss does not depend on the tensor " + spec.name);
      at::from_blob(gradients[i].data(), torch_shape(spec)).copy_(gradient);
    }
    return loss.item<float>();
  });
}

Result<Evaluation> TorchModel::evaluate(const Samples& samples, std::span<const ConstTensorView> parameters) {
  constexpr std::size_t kMostSamples = 10000, kMostTargets = 200000, kChunk = 250;
  network_->check(parameters);
  const std::size_t most = std::max<std::size_t>(1, kMostTargets / samples.targets_per_sample());
  const std::vector<std::uint32_t> numbers = spread(samples.size(), std::min(kMostSamples, most));
  return guarded([&]() -> Result<Evaluation> {
    const at::NoGradGuard no_gradients;
    const Named views = network_->named(parameters, /*with_gradients=*/false);
    Batch batch;
    double right = 0, loss = 0, targets = 0;
    for (std::size_t begin = 0; begin < numbers.size(); begin += kChunk) {
      samples.gather(std::span(numbers).subspan(begin, std::min(kChunk, numbers.size() - begin)), batch);
      const Tensor expected = targets_of(batch);
      const Tensor logits = network_->logits(views, batch);
      const double count = static_cast<double>(batch.targets.size());
      loss += count * at::cross_entropy_loss(logits, expected).item<double>();
      right += at::eq(logits.argmax(1), expected).sum().item<double>();
      targets += count;
    }
    return Evaluation{.accuracy = right / targets, .loss = loss / targets, .samples = numbers.size()};
  });
}

}  // namespace isthmus::models
