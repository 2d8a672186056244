// adam, adamw and yogi. The first two by PyTorch's rules (Kingma and Ba, ICLR 2015; Loshchilov and Hutter,
// ICLR 2019). yogi (Zaheer et al., NeurIPS 2018) moves the second moment by (1 - beta2) g^2 towards g^2,
// however far it is: v -= (1 - beta2) sign(v - g^2) g^2; it starts at 0 and is corrected as adam's.

#include "server/optimizer_moments.h"
#include "server/optimizer_rules.h"

namespace isthmus::server {
namespace {

class Adam final : public Optimizer {
 public:
  explicit Adam(const core::OptimizerConfig& config) noexcept : config_(config) {}

  std::size_t state_vectors() const noexcept override { return 2; }

  bool apply(std::span<float> parameters, std::span<const float> gradient,
             std::span<const std::span<float>> state, float learning_rate,
             std::uint64_t commit) const override {
    const Moments moments(config_, commit);
    const float step = static_cast<float>(learning_rate * moments.mean_correction);
    // adamw: the decay shrinks the parameters themselves instead of joining the gradient.
    const bool decoupled = config_.kind == core::OptimizerKind::kAdamw;
    const float keep =
        decoupled ? static_cast<float>(1 - double{learning_rate} * config_.weight_decay) : 1.0f;
    const float joined = decoupled ? 0.0f : config_.weight_decay;
    if (config_.kind == core::OptimizerKind::kYogi) {
      return update(
          parameters, gradient,
          [=](float p, float g, float& mean, float& square) {
            const float slope = g + joined * p;
            const float target = slope * slope;
            const float change = moments.rest2 * target;
            mean = moments.beta1 * mean + moments.rest1 * slope;
            square += target > square ? change : target < square ? -change : 0.0f;
            return p - step * moments.direction(mean, square);
          },
          state[0].data(), state[1].data());
    }
    return update(
        parameters, gradient,
        [=](float p, float g, float& mean, float& square) {
          moments.add(g + joined * p, mean, square);
          return keep * p - step * moments.direction(mean, square);
        },
        state[0].data(), state[1].data());
  }

 private:
  core::OptimizerConfig config_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_adam(const core::OptimizerConfig& config) {
  return std::make_unique<Adam>(config);
}

}  // namespace isthmus::server
