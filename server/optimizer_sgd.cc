// sgd, momentum and nesterov, by PyTorch's rule: v = momentum v + g; p -= rate v, or rate (g + momentum v).

#include "server/optimizer_rules.h"

namespace isthmus::server {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(float weight_decay) noexcept : weight_decay_(weight_decay) {}

  std::size_t state_vectors() const noexcept override { return 0; }

  bool apply(std::span<float> parameters, std::span<const float> gradient, std::span<const std::span<float>>,
             float learning_rate, std::uint64_t) const override {
    const float decay = weight_decay_;
    return update(parameters, gradient,
                  [=](float p, float g) { return p - learning_rate * (g + decay * p); });
  }

 private:
  float weight_decay_;
};

// The velocity is not scaled by the learning rate, so a schedule acts on all of it at once.
class Momentum final : public Optimizer {
 public:
  explicit Momentum(const core::OptimizerConfig& config) noexcept
      : momentum_(config.momentum),
        weight_decay_(config.weight_decay),
        nesterov_(config.kind == core::OptimizerKind::kNesterov) {}

  std::size_t state_vectors() const noexcept override { return 1; }

  bool apply(std::span<float> parameters, std::span<const float> gradient,
             std::span<const std::span<float>> state, float learning_rate, std::uint64_t) const override {
    const float decay = weight_decay_, momentum = momentum_;
    if (nesterov_) {
      return update(
          parameters, gradient,
          [=](float p, float g, float& velocity) {
            const float slope = g + decay * p;
            velocity = momentum * velocity + slope;
            return p - learning_rate * (slope + momentum * velocity);
          },
          state[0].data());
    }
    return update(
        parameters, gradient,
        [=](float p, float g, float& velocity) {
          velocity = momentum * velocity + (g + decay * p);
          return p - learning_rate * velocity;
        },
        state[0].data());
  }

 private:
  float momentum_;
  float weight_decay_;
  bool nesterov_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_sgd(const core::OptimizerConfig& config) {
  if (config.kind == core::OptimizerKind::kSgd) return std::make_unique<Sgd>(config.weight_decay);
  return std::make_unique<Momentum>(config);
}

}  // namespace isthmus::server
