#include "server/optimizer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "compression/codec.h"

namespace isthmus::server {
namespace {

using core::OptimizerConfig;
using enum core::OptimizerKind;

constexpr std::size_t kElements = 4;
constexpr std::size_t kCommits = 6;
using Row = std::array<float, kElements>;
struct Case {
  OptimizerConfig config;
  std::array<std::array<double, kElements>, kCommits> parameters;  // After each commit.
};
#include "tests/server/reference/optimizer.inc"

// One slice under an optimizer, with the state that it asks for.
class Trained {
 public:
  Trained(const OptimizerConfig& config, std::vector<float> initial)
      : optimizer_(make_optimizer(config)), parameters_(std::move(initial)) {
    memory_.assign(optimizer_->state_vectors(), std::vector<float>(parameters_.size()));
    state_.assign(memory_.begin(), memory_.end());
  }
  void commit(std::span<const float> gradient, float rate) {
    optimizer_->apply(parameters_, gradient, state_, rate, ++commits_);
  }
  const std::vector<float>& parameters() const { return parameters_; }

 private:
  std::unique_ptr<const Optimizer> optimizer_;
  std::vector<float> parameters_;
  std::vector<std::vector<float>> memory_;
  std::vector<std::span<float>> state_;
  std::uint64_t commits_ = 0;
};

TEST(OptimizerTest, AgreesWithTheReferenceInDoublePrecision) {
  for (const Case& c : kCases) {
    Trained trained(c.config, {kInitial.begin(), kInitial.end()});
    for (std::size_t commit = 0; commit < kCommits; ++commit) {
      trained.commit(kGradients[commit], kRates[commit]);
      for (std::size_t i = 0; i < kElements; ++i)
        EXPECT_NEAR(trained.parameters()[i], c.parameters[commit][i], 1e-6)
            << "case " << &c - kCases << " commit " << commit + 1 << " element " << i;
    }
  }
}

// Vectors and their tails round alike: an element's result does not depend on where it lies.
TEST(OptimizerTest, EveryElementIsTreatedAlike) {
  for (const Case& c : kCases) {
    constexpr std::size_t kLong = 37;
    Trained trained(c.config, std::vector<float>(kLong, kInitial[1]));
    for (std::size_t commit = 0; commit < kCommits; ++commit)
      trained.commit(std::vector<float>(kLong, kGradients[commit][1]), kRates[commit]);
    for (float value : trained.parameters()) EXPECT_EQ(value, trained.parameters()[0]);
  }
}

TEST(OptimizerTest, StateVectors) {
  EXPECT_EQ(make_optimizer({.kind = kSgd})->state_vectors(), 0u);
  EXPECT_EQ(make_optimizer({.kind = kMomentum})->state_vectors(), 1u);
  EXPECT_EQ(make_optimizer({.kind = kAdam})->state_vectors(), 2u);
  EXPECT_EQ(make_optimizer({.kind = kAdamw})->state_vectors(), 2u);
  EXPECT_EQ(make_optimizer({.kind = kNesterov})->state_vectors(), 1u);
  EXPECT_EQ(make_optimizer({.kind = kAdagrad})->state_vectors(), 1u);
  EXPECT_EQ(make_optimizer({.kind = kYogi})->state_vectors(), 2u);
  EXPECT_EQ(make_optimizer({.kind = kLamb})->state_vectors(), 2u);
}

// bsp: three workers' gradients {.2, .4, .9} are averaged, then one step from 1 at rate .1.
TEST(OptimizerTest, BspExample) {
  Trained trained({.kind = kSgd}, {1.0f});
  const float mean = (0.2f + 0.4f + 0.9f) / 3;
  trained.commit({{mean}}, 0.1f);
  EXPECT_NEAR(trained.parameters()[0], 0.95, 1e-6);
}

// async: on w^2/2 two workers pull w = 1 and push its gradient, 1, one after the other.
TEST(OptimizerTest, AsyncExample) {
  Trained trained({.kind = kSgd}, {1.0f});
  trained.commit({{1.0f}}, 0.1f);
  EXPECT_NEAR(trained.parameters()[0], 0.9, 1e-6);
  trained.commit({{1.0f}}, 0.1f);
  EXPECT_NEAR(trained.parameters()[0], 0.8, 1e-6);
}

// 1 - beta2^t needs all its bits at the first commit: there Adam's step is the rate, whatever the gradient.
TEST(OptimizerTest, AdamStartsWithAStepOfTheLearningRate) {
  Trained trained({.kind = kAdam}, {1.0f, 1.0f});
  trained.commit({{1e-3f, -1e3f}}, 0.125f);
  EXPECT_NEAR(trained.parameters()[0], 0.875, 2e-6);
  EXPECT_NEAR(trained.parameters()[1], 1.125, 2e-6);
}

// The ratio of lengths is that of the whole slice, and a slice of zeros has none.
TEST(OptimizerTest, LambScalesByTheSlicesLength) {
  // u is ±1 everywhere at the first commit, so a step of the length rate * |p|: 0.5 of it a way.
  Trained trained({.kind = kLamb}, {3.0f, 4.0f});
  trained.commit({{1.0f, -1.0f}}, 0.1f);
  const double step = 0.1 * 5 / std::sqrt(2.0);
  EXPECT_NEAR(trained.parameters()[0], 3 - step, 1e-6);
  EXPECT_NEAR(trained.parameters()[1], 4 + step, 1e-6);
  Trained zeros({.kind = kLamb}, {0.0f, 0.0f});
  zeros.commit({{1.0f, -1.0f}}, 0.125f);
  EXPECT_NEAR(zeros.parameters()[0], -0.125, 1e-6);
  zeros.commit({{0.0f, 0.0f}}, 0.125f);
  EXPECT_TRUE(std::isfinite(zeros.parameters()[0]));
}

TEST(OptimizerTest, SaysWhenParametersAreNoLongerFinite) {
  for (std::size_t kind = 0; kind < core::names_of(core::OptimizerKind()).size(); ++kind) {
    const auto optimizer = make_optimizer({.kind = static_cast<core::OptimizerKind>(kind)});
    for (const float rate : {0.1f, 3e38f}) {
      for (const std::size_t at : {0u, 17u, 36u}) {
        std::vector<float> parameters(37, 2.0f), gradient(37, 0.0f);
        std::vector<std::vector<float>> memory(optimizer->state_vectors(), parameters);
        std::vector<std::span<float>> state(memory.begin(), memory.end());
        gradient[at] = 30.0f;
        parameters[at] = rate > 1 ? -3e38f : 2.0f;
        const bool finite = optimizer->apply(parameters, gradient, state, rate, 1);
        EXPECT_EQ(finite, compression::all_finite(parameters)) << kind << " " << rate << " " << at;
        EXPECT_EQ(finite, rate < 1) << kind << " " << at;
      }
    }
  }
}

}  // namespace
}  // namespace isthmus::server
