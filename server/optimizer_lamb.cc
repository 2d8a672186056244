// lamb (You et al., ICLR 2020): adam's direction u, with the decay joined to it, scaled for each layer by
// |p| / |u|. The layer is the slice: that is the tensor, unless it is larger than `slice` (docs/decisions).

#include <cmath>

#include "server/optimizer_moments.h"
#include "server/optimizer_rules.h"

namespace isthmus::server {
namespace {

class Lamb final : public Optimizer {
 public:
  explicit Lamb(const core::OptimizerConfig& config) noexcept : config_(config) {}

  std::size_t state_vectors() const noexcept override { return 2; }

  // Two passes: the ratio must be known before the first parameter moves.
  bool apply(std::span<float> parameters, std::span<const float> gradient,
             std::span<const std::span<float>> state, float learning_rate,
             std::uint64_t commit) const override {
    const Moments moments(config_, commit);
    const auto correction = static_cast<float>(moments.mean_correction);
    const float decay = config_.weight_decay;
    const auto direction = [=](float p, float mean, float square) {
      return correction * moments.direction(mean, square) + decay * p;
    };
    double length = 0.0, length_of_step = 0.0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const float p = parameters[i];
      moments.add(gradient[i], state[0][i], state[1][i]);
      const double u = direction(p, state[0][i], state[1][i]);
      length += double{p} * p;
      length_of_step += u * u;
    }
    const bool scaled = length > 0.0 && length_of_step > 0.0;
    const double ratio = scaled ? std::sqrt(length / length_of_step) : 1.0;
    const float rate = static_cast<float>(learning_rate * ratio);
    return update(
        parameters, gradient,
        [=](float p, float, const float& mean, const float& square) {
          return p - rate * direction(p, mean, square);
        },
        state[0].data(), state[1].data());
  }

 private:
  core::OptimizerConfig config_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_lamb(const core::OptimizerConfig& config) {
  return std::make_unique<Lamb>(config);
}

}  // namespace isthmus::server
