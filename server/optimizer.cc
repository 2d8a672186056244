#include "server/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace isthmus::server {
namespace {

// The loops take plain pointers and locals, so that the compiler sees that nothing else changes and
// vectorises them. Every element is rounded the same way whatever the width of a vector.

class Sgd final : public Optimizer {
 public:
  explicit Sgd(float weight_decay) noexcept : weight_decay_(weight_decay) {}

  std::size_t state_vectors() const noexcept override { return 0; }

  void apply(std::span<float> parameters, std::span<const float> gradient, std::span<std::span<float>>,
             float learning_rate, std::uint64_t) const override {
    float* p = parameters.data();
    const float* g = gradient.data();
    const float decay = weight_decay_;
    for (std::size_t i = 0, n = parameters.size(); i < n; ++i) p[i] -= learning_rate * (g[i] + decay * p[i]);
  }

 private:
  float weight_decay_;
};

// The velocity is not scaled by the learning rate, so a schedule acts on all of it at once.
class Momentum final : public Optimizer {
 public:
  Momentum(float momentum, float weight_decay) noexcept : momentum_(momentum), weight_decay_(weight_decay) {}

  std::size_t state_vectors() const noexcept override { return 1; }

  void apply(std::span<float> parameters, std::span<const float> gradient, std::span<std::span<float>> state,
             float learning_rate, std::uint64_t) const override {
    float* p = parameters.data();
    float* v = state[0].data();
    const float* g = gradient.data();
    const float decay = weight_decay_, momentum = momentum_;
    for (std::size_t i = 0, n = parameters.size(); i < n; ++i) {
      v[i] = momentum * v[i] + (g[i] + decay * p[i]);
      p[i] -= learning_rate * v[i];
    }
  }

 private:
  float momentum_;
  float weight_decay_;
};

class Adam final : public Optimizer {
 public:
  // `decoupled`: the decay shrinks the parameters themselves (AdamW) instead of joining the gradient.
  Adam(const core::OptimizerConfig& config, bool decoupled) noexcept
      : beta1_(config.beta1),
        beta2_(config.beta2),
        epsilon_(config.epsilon),
        weight_decay_(config.weight_decay),
        decoupled_(decoupled) {}

  std::size_t state_vectors() const noexcept override { return 2; }

  void apply(std::span<float> parameters, std::span<const float> gradient, std::span<std::span<float>> state,
             float learning_rate, std::uint64_t commit) const override {
    float* p = parameters.data();
    float* m = state[0].data();
    float* v = state[1].data();
    const float* g = gradient.data();
    // What does not depend on the element is computed in double once: 1 - beta2^t cancels badly in float.
    const double t = static_cast<double>(commit), rate = learning_rate;
    const float beta1 = static_cast<float>(beta1_), rest1 = static_cast<float>(1 - beta1_);
    const float beta2 = static_cast<float>(beta2_), rest2 = static_cast<float>(1 - beta2_);
    const float step = static_cast<float>(rate / (1 - std::pow(beta1_, t)));
    const float correction = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, t)));
    const float keep = decoupled_ ? static_cast<float>(1 - rate * weight_decay_) : 1.0f;
    const float joined = decoupled_ ? 0.0f : weight_decay_;
    const float epsilon = epsilon_;
    for (std::size_t i = 0, n = parameters.size(); i < n; ++i) {
      const float slope = g[i] + joined * p[i];
      m[i] = beta1 * m[i] + rest1 * slope;
      v[i] = beta2 * v[i] + rest2 * slope * slope;
      p[i] = keep * p[i] - step * m[i] / (std::sqrt(v[i]) * correction + epsilon);
    }
  }

 private:
  double beta1_;
  double beta2_;
  float epsilon_;
  float weight_decay_;
  bool decoupled_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_optimizer(const core::OptimizerConfig& config) {
  switch (config.kind) {
    case core::OptimizerKind::kMomentum:
      return std::make_unique<Momentum>(config.momentum, config.weight_decay);
    case core::OptimizerKind::kAdam: return std::make_unique<Adam>(config, false);
    case core::OptimizerKind::kAdamw: return std::make_unique<Adam>(config, true);
    case core::OptimizerKind::kSgd: break;
  }
  return std::make_unique<Sgd>(config.weight_decay);
}

float scheduled_learning_rate(const core::OptimizerConfig& config, std::uint64_t steps) {
  const std::uint64_t length = config.schedule_steps;
  if (length == 0) return config.learning_rate;
  const double done = static_cast<double>(std::min(steps, length)) / static_cast<double>(length);
  const double end = config.final_fraction;
  const std::uint64_t drops = steps / length;
  double fraction = 1;
  switch (config.schedule) {
    case core::ScheduleKind::kConstant: break;
    case core::ScheduleKind::kLinear: fraction = 1 + (end - 1) * done; break;
    case core::ScheduleKind::kCosine:
      fraction = end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * done));
      break;
    case core::ScheduleKind::kStep:
      fraction = std::pow(static_cast<double>(config.decay_factor), static_cast<double>(drops));
      break;
  }
  return static_cast<float>(config.learning_rate * fraction);
}

}  // namespace isthmus::server
