#include "server/learning_rate.h"

#include <gtest/gtest.h>

#include <vector>

namespace isthmus::server {
namespace {

using core::OptimizerConfig;
using core::ScheduleKind;

TEST(LearningRateTest, Tables) {
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
  auto warmed = [](OptimizerConfig config, std::uint64_t steps) {
    config.warmup_steps = steps;
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
      // torch.optim.lr_scheduler.LinearLR(start_factor=1/4, total_iters=3), then CosineAnnealingLR(T_max=4).
      {warmed(with(ScheduleKind::kCosine, 4, 0), 4),
       {{0, 0.125}, {1, 0.25}, {2, 0.375}, {3, 0.5}, {4, 0.5}, {6, 0.25}, {8, 0.0}, {9, 0.0}}},
      {warmed(with(ScheduleKind::kConstant, 0, 0), 2), {{0, 0.25}, {1, 0.5}, {2, 0.5}, {99, 0.5}}},
      // sqrt(w / step), as in "Attention is all you need", when as long as the warm-up.
      {warmed(with(ScheduleKind::kInverseSqrt, 100, 0), 100),
       {{0, 0.005}, {99, 0.5}, {100, 0.5}, {400, 0.25}, {10'000, 0.05}}},
      {with(ScheduleKind::kInverseSqrt, 10, 0), {{0, 0.5}, {30, 0.25}}},
      // Nothing to decay over.
      {with(ScheduleKind::kLinear, 0, 0), {{0, 0.5}, {5, 0.5}}},
  };
  for (const Table& table : tables)
    for (const Point& point : table.points)
      EXPECT_NEAR(scheduled_learning_rate(table.config, point.steps), point.rate, 1e-7)
          << "table " << &table - tables << " steps " << point.steps;
}

// Card STALE_LR: alpha0 = .1; g = 1 of staleness 1 and g = 2 of staleness 4, averaged: a step of .075.
TEST(LearningRateTest, AStaleGradientCountsLess) {
  const double step = (.1 * stale_share(1, 0.01) * 1 + .1 * stale_share(4, 0.01) * 2) / 2;
  EXPECT_NEAR(step, .075, 1e-12);
  EXPECT_EQ(stale_share(0, 0.1), 1.0);
  EXPECT_EQ(stale_share(1'000'000, 0.1), 0.1);
  EXPECT_EQ(stale_share(7, 1.0), 1.0) << "off";
}

}  // namespace
}  // namespace isthmus::server
