#include "trainer/synthetic.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "core/check.h"
#include "trainer/model_table.h"

namespace isthmus::models {

using SteadyClock = std::chrono::steady_clock;

bool pace_until(SteadyClock::time_point deadline, bool spin, const std::stop_token& stop) {
  constexpr auto kLook = std::chrono::milliseconds(20);  // How often a sleeper looks at `stop`.
  for (;;) {
    if (stop.stop_requested()) return false;
    const SteadyClock::time_point now = SteadyClock::now();
    if (now >= deadline) return true;
    if (!spin) std::this_thread::sleep_until(std::min(deadline, now + kLook));
  }
}

Result<std::unique_ptr<SyntheticWorkload>> SyntheticWorkload::create(const core::TrainerConfig& config,
                                                                     WorkerPlace place,
                                                                     std::stop_token stop) {
  Result<std::vector<TensorSpec>> table = model_table(config);
  if (!table.ok()) return table.status();
  return std::unique_ptr<SyntheticWorkload>(
      new SyntheticWorkload(*std::move(table), config, place, std::move(stop)));
}

SyntheticWorkload::SyntheticWorkload(std::vector<TensorSpec> table, const core::TrainerConfig& config,
                                     WorkerPlace place, std::stop_token stop)
    : table_(std::move(table)),
      config_(config.synthetic),
      samples_(config.batch),
      place_(place),
      stop_(std::move(stop)) {}

void SyntheticWorkload::initial(std::uint64_t /*seed*/, std::span<const TensorView> parameters) const {
  for (const TensorView view : parameters) std::fill(view.begin(), view.end(), 0.0f);
}

Result<float> SyntheticWorkload::compute(Step finished, std::span<const ConstTensorView> parameters,
                                         std::span<const TensorView> gradients) {
  ISTHMUS_CHECK(parameters.size() == table_.size() && gradients.size() == table_.size());
  const SteadyClock::time_point deadline = SteadyClock::now() + config_.step_time;
  const bool poison = place_.worker == 0 && config_.nan_at_step != 0 && finished + 1 == config_.nan_at_step;
  const float value = poison ? std::numeric_limits<float>::quiet_NaN() : config_.gradient;
  for (const TensorView view : gradients) std::fill(view.begin(), view.end(), value);
  if (!pace_until(deadline, config_.spin, stop_)) return Status(ErrorCode::kCancelled, "asked to stop");
  return parameters[0][0];
}

Result<Evaluation> SyntheticWorkload::evaluate(std::span<const ConstTensorView> parameters) {
  ISTHMUS_CHECK(parameters.size() == table_.size());
  return Evaluation{.accuracy = 0.0, .loss = parameters[0][0], .samples = 0};
}

}  // namespace isthmus::models
