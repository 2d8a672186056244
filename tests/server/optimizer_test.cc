#include "server/optimizer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace isthmus::server {
namespace {

using core::OptimizerConfig;
using enum core::OptimizerKind;
using core::ScheduleKind;

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

TEST(ScheduleTest, Tables) {
  struct Point {
    std::uint64_t steps;
    double rate;
  };
  struct Table {
    OptimizerConfig config;
    std::vector<Point> points;
  };
  const OptimizerConfig base{.learning_rate = 0.5f};
  auto with = [&](ScheduleKind kind, std::uint64_t steps, float end) {
    OptimizerConfig config = base;
    config.schedule = kind, config.schedule_steps = steps, config.final_fraction = end;
    return config;
  };
  OptimizerConfig halving = with(ScheduleKind::kStep, 10, 0);
  halving.decay_factor = 0.5f;
  const Table tables[] = {
      {with(ScheduleKind::kConstant, 0, 0), {{0, 0.5}, {1'000'000, 0.5}}},
      {with(ScheduleKind::kConstant, 10, 0), {{0, 0.5}, {20, 0.5}}},
      {with(ScheduleKind::kLinear, 100, 0), {{0, 0.5}, {25, 0.375}, {50, 0.25}, {100, 0.0}, {101, 0.0}}},
      {with(ScheduleKind::kLinear, 4, 0.5f), {{0, 0.5}, {1, 0.4375}, {4, 0.25}, {9, 0.25}}},
      // (1 + cos(pi/3)) / 2 = 3/4 and (1 + cos(pi/2)) / 2 = 1/2.
      {with(ScheduleKind::kCosine, 60, 0),
       {{0, 0.5}, {20, 0.375}, {30, 0.25}, {40, 0.125}, {60, 0.0}, {90, 0.0}}},
      {with(ScheduleKind::kCosine, 60, 0.5f), {{0, 0.5}, {20, 0.4375}, {60, 0.25}, {90, 0.25}}},
      {halving, {{0, 0.5}, {9, 0.5}, {10, 0.25}, {19, 0.25}, {20, 0.125}, {35, 0.0625}}},
      // Nothing to decay over.
      {with(ScheduleKind::kLinear, 0, 0), {{0, 0.5}, {5, 0.5}}},
  };
  for (const Table& table : tables)
    for (const Point& point : table.points)
      EXPECT_NEAR(scheduled_learning_rate(table.config, point.steps), point.rate, 1e-7)
          << "table " << &table - tables << " steps " << point.steps;
}

}  // namespace
}  // namespace isthmus::server
