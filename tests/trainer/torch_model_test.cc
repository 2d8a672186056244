#include "trainer/torch_model.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/random.h"
#include "tests/trainer/reference_models.h"
#include "trainer/model_table.h"

namespace isthmus::models {
namespace {

constexpr std::uint32_t kSequence = 6;

core::TrainerConfig config_of(const std::string& model) {
  core::TrainerConfig config;
  config.model = model;
  config.data.set = model == "charlm" ? "text" : "fashion-mnist";
  config.sequence = kSequence;
  return config;
}

// Samples of random bytes: few classes of letters for text, so that the model can be right.
Samples random_samples(const std::string& model, std::size_t count) {
  core::Random random(5, {0, 0, 0});
  std::vector<std::uint8_t> bytes(model == "charlm" ? count * kSequence + 1 : count * 784), labels(count);
  for (std::uint8_t& byte : bytes)
    byte = static_cast<std::uint8_t>(model == "charlm" ? 'a' + random.below(4) : random.below(256));
  for (std::uint8_t& label : labels) label = static_cast<std::uint8_t>(random.below(10));
  return model == "charlm" ? Samples::text(bytes, kSequence) : Samples::images(bytes, labels, 784);
}

class TorchModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<TorchModel>> model = TorchModel::create(config_of(GetParam()));
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    model_ = *std::move(model);
    for (const TensorSpec& spec : model_->table()) {
      parameters_.emplace_back(spec.elements());
      gradients_.emplace_back(spec.elements(), 99.0f);
    }
    const std::vector<TensorView> views(parameters_.begin(), parameters_.end());
    initial_parameters(model_->table(), 3, views);
    // Biases start at zero, where a gate or a ReLU that ignores them looks the same.
    core::Random random(4, {0, 0, 0});
    for (std::vector<float>& tensor : parameters_)
      if (tensor[0] == 0.0f)
        for (float& value : tensor) value = static_cast<float>(0.2 * random.uniform() - 0.1);

    std::vector<std::uint32_t> numbers(5);
    std::iota(numbers.begin(), numbers.end(), 0u);
    random_samples(GetParam(), 5).gather(numbers, batch_);
  }

  std::vector<ConstTensorView> parameters() const { return {parameters_.begin(), parameters_.end()}; }

  float compute(const Batch& batch) {
    const std::vector<TensorView> gradients(gradients_.begin(), gradients_.end());
    const Result<float> loss = model_->loss_and_gradient(batch, parameters(), gradients);
    EXPECT_TRUE(loss.ok()) << loss.status().to_string();
    return loss.ok() ? *loss : 0.0f;
  }

  ReferenceParameters in_double() const {
    ReferenceParameters doubles;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      doubles[model_->table()[i].name] = Doubles(parameters_[i].begin(), parameters_[i].end());
    return doubles;
  }

  double reference_loss_of(const ReferenceParameters& p) const {
    return reference_loss(reference_logits(GetParam(), p, batch_), batch_.targets);
  }

  std::unique_ptr<TorchModel> model_;
  std::vector<std::vector<float>> parameters_, gradients_;
  Batch batch_;
};

TEST_P(TorchModelTest, LossIsThatOfTheReference) {
  EXPECT_NEAR(compute(batch_), reference_loss_of(in_double()), 1e-5);
}

TEST_P(TorchModelTest, GradientsAreThoseOfFiniteDifferences) {
  compute(batch_);
  ReferenceParameters p = in_double();
  constexpr double kStep = 1e-5;
  core::Random random(6, {0, 0, 0});
  for (std::size_t t = 0; t < gradients_.size(); ++t) {
    const std::vector<float>& gradient = gradients_[t];
    const auto smaller = [](float a, float b) { return std::abs(a) < std::abs(b); };
    const auto steepest = std::max_element(gradient.begin(), gradient.end(), smaller) - gradient.begin();
    EXPECT_GT(std::abs(gradient[static_cast<std::size_t>(steepest)]), 1e-4) << model_->table()[t].name;
    std::vector<std::size_t> coordinates{static_cast<std::size_t>(steepest)};
    for (int i = 0; i < 3; ++i)
      coordinates.push_back(random.below(static_cast<std::uint32_t>(gradient.size())));
    for (std::size_t c : coordinates) {
      double& value = p.at(model_->table()[t].name)[c];
      const double before = value;
      value = before + kStep;
      const double above = reference_loss_of(p);
      value = before - kStep;
      const double below = reference_loss_of(p);
      value = before;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[c], expected, 1e-6 + 1e-4 * std::abs(expected))
          << model_->table()[t].name << "[" << c << "]";
    }
  }
}

TEST_P(TorchModelTest, TheSameAskedAgainGivesTheSameBitsAndLeavesTheParameters) {
  const auto before = parameters_;
  const float loss = compute(batch_);
  const auto gradients = gradients_;
  EXPECT_EQ(compute(batch_), loss);
  EXPECT_EQ(gradients_, gradients);
  EXPECT_EQ(parameters_, before);
}

TEST_P(TorchModelTest, EvaluationCountsEverySample) {
  const Samples samples = random_samples(GetParam(), 260);  // More than are computed at once.
  std::vector<std::uint32_t> numbers(260);
  std::iota(numbers.begin(), numbers.end(), 0u);
  samples.gather(numbers, batch_);
  const std::vector<Doubles> logits = reference_logits(GetParam(), in_double(), batch_);

  const Result<Evaluation> evaluation = model_->evaluate(samples, parameters());
  ASSERT_TRUE(evaluation.ok()) << evaluation.status().to_string();
  EXPECT_EQ(evaluation->samples, 260u);
  EXPECT_NEAR(evaluation->loss, reference_loss(logits, batch_.targets), 1e-5);
  // At most one close call may fall to the other side.
  EXPECT_NEAR(evaluation->accuracy, reference_accuracy(logits, batch_.targets),
              1.01 / static_cast<double>(logits.size()));
}

TEST_P(TorchModelTest, DescendingTheGradientLearnsTheBatch) {
  const float before = compute(batch_);
  for (int step = 0; step < 60; ++step) {
    compute(batch_);
    for (std::size_t t = 0; t < parameters_.size(); ++t)
      for (std::size_t i = 0; i < parameters_[t].size(); ++i) parameters_[t][i] -= 0.05f * gradients_[t][i];
  }
  EXPECT_LT(compute(batch_), 0.8f * before);
}

INSTANTIATE_TEST_SUITE_P(Models, TorchModelTest, ::testing::Values("mlp", "cnn", "charlm"),
                         [](const auto& parameter) { return parameter.param; });

TEST(TorchModelErrorsTest, WhatIsNotComputedIsRefused) {
  EXPECT_EQ(TorchModel::create(config_of("synthetic")).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(TorchModel::create(config_of("resnet")).status().code(), ErrorCode::kInvalidArgument);
}

TEST(TorchModelThreadsTest, TheBlasIsHeldToOneThread) {
  void* symbol = ::dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
  if (symbol == nullptr) GTEST_SKIP() << "the BLAS of this machine is not OpenBLAS";
  ASSERT_TRUE(TorchModel::create(config_of("mlp")).ok());
  EXPECT_EQ(reinterpret_cast<int (*)()>(symbol)(), 1);
}

TEST(TorchModelErrorsTest, ALibtorchErrorIsAStatus) {
  const auto model = TorchModel::create(config_of("mlp"));
  ASSERT_TRUE(model.ok());
  std::vector<std::vector<float>> values;
  for (const TensorSpec& spec : (*model)->table()) values.emplace_back(spec.elements());
  const std::vector<ConstTensorView> parameters(values.begin(), values.end());
  const std::vector<TensorView> gradients(values.begin(), values.end());
  Batch batch;
  batch.samples = 1;
  batch.pixels.resize(784);
  batch.targets = {10};  // Only 0 to 9 are classes.
  const Status status = (*model)->loss_and_gradient(batch, parameters, gradients).status();
  EXPECT_EQ(status.code(), ErrorCode::kInternal) << status.to_string();
}

}  // namespace
}  // namespace isthmus::models
