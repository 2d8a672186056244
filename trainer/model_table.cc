#include "trainer/model_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/check.h"
#include "core/random.h"
#include "trainer/streams.h"

namespace isthmus::models {
namespace {

std::vector<TensorSpec> mlp_table() {
  constexpr std::uint64_t kPixels = kImageRows * kImageColumns;
  return {{"fc1.weight", {256, kPixels}},       {"fc1.bias", {256}},
          {"fc2.weight", {128, 256}},           {"fc2.bias", {128}},
          {"fc3.weight", {kImageClasses, 128}}, {"fc3.bias", {kImageClasses}}};
}

// 28x28 -> 14x14 after the first pool, 7x7 after the second.
std::vector<TensorSpec> cnn_table() {
  constexpr std::uint64_t kFirst = 8, kSecond = 16, kHidden = 128;
  return {{"conv1.weight", {kFirst, 1, 3, 3}},        {"conv1.bias", {kFirst}},
          {"conv2.weight", {kSecond, kFirst, 3, 3}},  {"conv2.bias", {kSecond}},
          {"fc1.weight", {kHidden, kSecond * 7 * 7}}, {"fc1.bias", {kHidden}},
          {"fc2.weight", {kImageClasses, kHidden}},   {"fc2.bias", {kImageClasses}}};
}

std::vector<TensorSpec> charlm_table() {
  constexpr std::uint64_t kEmbedding = 32, kHidden = 128;
  return {{"embedding.weight", {kBytesVocabulary, kEmbedding}},
          {"gru.weight_ih_l0", {3 * kHidden, kEmbedding}},
          {"gru.weight_hh_l0", {3 * kHidden, kHidden}},
          {"gru.bias_ih_l0", {3 * kHidden}},
          {"gru.bias_hh_l0", {3 * kHidden}},
          {"head.weight", {kBytesVocabulary, kHidden}},
          {"head.bias", {kBytesVocabulary}}};
}

Result<std::vector<TensorSpec>> synthetic_table(const core::SyntheticConfig& config) {
  constexpr std::uint64_t kMaxTensors = 1'000'000;
  constexpr std::uint64_t kMaxElements = 1ull << 40;
  if (config.tensors == 0 || config.tensors > kMaxTensors)
    return Status(ErrorCode::kInvalidArgument, "trainer.synthetic.tensors: not in [1, 1000000]");
  if (config.elements == 0 || config.elements > kMaxElements / config.tensors)
    return Status(ErrorCode::kInvalidArgument,
                  "trainer.synthetic.elements: not at least 1, or more than 2^40 in all tensors");
  std::vector<TensorSpec> table;
  table.reserve(config.tensors);
  for (std::uint64_t i = 0; i < config.tensors; ++i)
    table.push_back({"tensor" + std::to_string(i), {config.elements}});
  return table;
}

Status check_data_set(const core::TrainerConfig& config, const char* set) {
  if (config.data.set == set) return {};
  return Status(ErrorCode::kInvalidArgument, "trainer.data.set: the model " + config.model + " needs " + set +
                                                 ", not '" + config.data.set + "'");
}

}  // namespace

Result<std::vector<TensorSpec>> model_table(const core::TrainerConfig& config) {
  if (config.model == "synthetic") return synthetic_table(config.synthetic);
  if (config.model == "mlp" || config.model == "cnn") {
    ISTHMUS_RETURN_IF_ERROR(check_data_set(config, "fashion-mnist"));
    return config.model == "mlp" ? mlp_table() : cnn_table();
  }
  if (config.model == "charlm") {
    ISTHMUS_RETURN_IF_ERROR(check_data_set(config, "text"));
    return charlm_table();
  }
  if (config.model == "custom")
    return Status(ErrorCode::kInvalidArgument,
                  "trainer.model: the tensors of a custom model are known to its workers only");
  return Status(ErrorCode::kInvalidArgument,
                "trainer.model: '" + config.model + "' is none of mlp, cnn, charlm, synthetic");
}

void initial_parameters(std::span<const TensorSpec> table, std::uint64_t seed,
                        std::span<const TensorView> views) {
  ISTHMUS_CHECK(table.size() == views.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    ISTHMUS_CHECK(table[i].elements() == views[i].size());
    if (table[i].shape.size() < 2) {
      std::fill(views[i].begin(), views[i].end(), 0.0f);
      continue;
    }
    core::Random random(seed, {kInitialStream, static_cast<std::uint32_t>(i), 0});
    const double fan_in = static_cast<double>(table[i].elements() / table[i].shape[0]);
    const double bound = 1.0 / std::sqrt(fan_in);
    for (float& value : views[i]) value = static_cast<float>((2.0 * random.uniform() - 1.0) * bound);
  }
}

}  // namespace isthmus::models
