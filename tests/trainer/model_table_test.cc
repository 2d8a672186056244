#include "trainer/model_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

namespace isthmus::models {
namespace {

core::TrainerConfig config_of(const std::string& model) {
  core::TrainerConfig config;
  config.model = model;
  config.data.set = model == "charlm" ? "text" : "fashion-mnist";
  return config;
}

std::uint64_t elements_of(const std::vector<TensorSpec>& table) {
  std::uint64_t elements = 0;
  for (const TensorSpec& spec : table) elements += spec.elements();
  return elements;
}

// Parameter counts as anybody computes them: inputs x outputs + outputs of each layer.
TEST(ModelTableTest, ModelsHaveTheParametersOfTheirLayers) {
  const std::map<std::string, std::uint64_t> expected = {
      {"mlp", 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10},
      {"cnn", 9 * 8 + 8 + 8 * 9 * 16 + 16 + 784 * 128 + 128 + 128 * 10 + 10},
      {"charlm", 256 * 32 + 3 * 128 * (32 + 128 + 2) + 128 * 256 + 256}};
  for (const auto& [model, elements] : expected) {
    const auto table = model_table(config_of(model));
    ASSERT_TRUE(table.ok()) << table.status().to_string();
    EXPECT_EQ(elements_of(*table), elements) << model;
    std::set<std::string> names;
    for (const TensorSpec& spec : *table) names.insert(spec.name);
    EXPECT_EQ(names.size(), table->size()) << model;
  }
}

TEST(ModelTableTest, SyntheticHasWhatTheConfigSays) {
  core::TrainerConfig config = config_of("synthetic");
  config.synthetic.tensors = 3;
  config.synthetic.elements = 5;
  const auto table = model_table(config);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(*table, (std::vector<TensorSpec>{{"tensor0", {5}}, {"tensor1", {5}}, {"tensor2", {5}}}));
}

TEST(ModelTableTest, WhatCannotBeSaysWhichKeyIsWrong) {
  const auto expect = [](const core::TrainerConfig& config, const std::string& key) {
    const Status status = model_table(config).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.message().rfind(key, 0), 0u) << status.message();
  };
  expect(config_of("resnet"), "trainer.model:");
  core::TrainerConfig config = config_of("mlp");
  config.data.set = "text";
  expect(config, "trainer.data.set:");
  config = config_of("charlm");
  config.data.set = "fashion-mnist";
  expect(config, "trainer.data.set:");
  config = config_of("synthetic");
  config.synthetic.tensors = 0;
  expect(config, "trainer.synthetic.tensors:");
  config.synthetic.tensors = ~0ull;
  expect(config, "trainer.synthetic.tensors:");
  config.synthetic.tensors = 4;
  config.synthetic.elements = 0;
  expect(config, "trainer.synthetic.elements:");
  config.synthetic.elements = ~0ull / 2;
  expect(config, "trainer.synthetic.elements:");
}

std::vector<std::vector<float>> initial(const std::vector<TensorSpec>& table, std::uint64_t seed) {
  std::vector<std::vector<float>> values;
  for (const TensorSpec& spec : table) values.emplace_back(spec.elements(), 7.0f);
  const std::vector<TensorView> views(values.begin(), values.end());
  initial_parameters(table, seed, views);
  return values;
}

TEST(ModelTableTest, InitialParametersFollowFromTheSeed) {
  const std::vector<TensorSpec> table = *model_table(config_of("cnn"));
  EXPECT_EQ(initial(table, 1), initial(table, 1));
  EXPECT_NE(initial(table, 1), initial(table, 2));
}

TEST(ModelTableTest, MatricesAreUniformByFanInAndVectorsZero) {
  const std::vector<TensorSpec> table = {
      {"square", {50, 100}}, {"twin", {50, 100}}, {"conv", {40, 5, 3, 3}}, {"bias", {50}}};
  const auto values = initial(table, 3);
  EXPECT_NE(values[0], values[1]);
  const double bounds[] = {0.1, 0.1, 1 / std::sqrt(45.0)};
  for (std::size_t i = 0; i < 3; ++i) {
    double sum = 0, squares = 0;
    for (float value : values[i]) {
      EXPECT_LE(std::abs(value), bounds[i] * 1.000001);
      sum += value;
      squares += static_cast<double>(value) * value;
    }
    const double n = static_cast<double>(values[i].size());
    const double deviation = bounds[i] / std::sqrt(3.0);
    EXPECT_NEAR(sum / n, 0.0, 6 * deviation / std::sqrt(n));
    EXPECT_NEAR(squares / n, deviation * deviation, 6 * 0.9 * deviation * deviation / std::sqrt(n));
  }
  EXPECT_EQ(values[3], std::vector<float>(50, 0.0f));
}

}  // namespace
}  // namespace isthmus::models
