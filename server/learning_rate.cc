#include "server/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace isthmus::server {
namespace {

// What is left of the learning rate after `steps` steps of the schedule.
double share_left(const core::OptimizerConfig& config, std::uint64_t steps) {
  const std::uint64_t length = config.schedule_steps;
  if (length == 0) return 1.0;
  const double done = static_cast<double>(std::min(steps, length)) / static_cast<double>(length);
  const double end = config.final_fraction;
  switch (config.schedule) {
    case core::ScheduleKind::kConstant: break;
    case core::ScheduleKind::kLinear: return 1 + (end - 1) * done;
    case core::ScheduleKind::kCosine: return end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * done));
    case core::ScheduleKind::kStep:
      return std::pow(static_cast<double>(config.decay_factor), static_cast<double>(steps / length));
    case core::ScheduleKind::kInverseSqrt:
      return std::sqrt(static_cast<double>(length) /
                       (static_cast<double>(length) + static_cast<double>(steps)));
  }
  return 1.0;
}

}  // namespace

float scheduled_learning_rate(const core::OptimizerConfig& config, std::uint64_t step) {
  const std::uint64_t warmup = config.warmup_steps;
  if (step < warmup) {
    const double share = static_cast<double>(step + 1) / static_cast<double>(warmup);
    return static_cast<float>(config.learning_rate * share);
  }
  return static_cast<float>(config.learning_rate * share_left(config, step - warmup));
}

double stale_share(std::uint64_t staleness, double least) {
  return staleness <= 1 ? 1.0 : std::max(1.0 / static_cast<double>(staleness), least);
}

}  // namespace isthmus::server
