#include "server/delay_compensation.h"

#include <algorithm>
#include <cmath>

namespace isthmus::server {
namespace {

constexpr float kEpsilon = 1e-7f;

float corrected(float gradient, float lambda, float moved) {
  const float most = std::fabs(gradient);
  return gradient + std::clamp(lambda * gradient * gradient * moved, -most, most);
}

}  // namespace

void compensate(const core::CompensationConfig& config, std::span<const float> now,
                std::span<const float> then, std::span<float> mean_squares, std::span<float> gradient) {
  if (!config.adaptive) {
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = corrected(gradient[i], config.lambda, now[i] - then[i]);
    return;
  }
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float g = gradient[i];
    const float decay = mean_squares[i] == 0.0f ? 0.0f : config.decay;
    mean_squares[i] = decay * mean_squares[i] + (1.0f - decay) * g * g;
    const float lambda = config.lambda / std::sqrt(mean_squares[i] + kEpsilon);
    gradient[i] = corrected(g, lambda, now[i] - then[i]);
  }
}

}  // namespace isthmus::server
