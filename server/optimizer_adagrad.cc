// adagrad, by PyTorch's rule without its own decay of the rate: s += g^2; p -= rate g / (sqrt(s) + epsilon)
// (Duchi, Hazan, Singer, JMLR 2011).

#include <cmath>

#include "server/optimizer_rules.h"

namespace isthmus::server {
namespace {

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const core::OptimizerConfig& config) noexcept
      : epsilon_(config.epsilon), weight_decay_(config.weight_decay) {}

  std::size_t state_vectors() const noexcept override { return 1; }

  bool apply(std::span<float> parameters, std::span<const float> gradient,
             std::span<const std::span<float>> state, float learning_rate, std::uint64_t) const override {
    const float decay = weight_decay_, epsilon = epsilon_;
    return update(
        parameters, gradient,
        [=](float p, float g, float& sum) {
          const float slope = g + decay * p;
          sum += slope * slope;
          return p - learning_rate * slope / (std::sqrt(sum) + epsilon);
        },
        state[0].data());
  }

 private:
  float epsilon_;
  float weight_decay_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_adagrad(const core::OptimizerConfig& config) {
  return std::make_unique<Adagrad>(config);
}

}  // namespace isthmus::server
