// What adam, adamw, yogi and lamb share: running means of the gradient and of its square, and the numbers
// of one commit that do not depend on the element.
//
// Threads: values.  Memory: none.  Errors: none.

#pragma once

#include <cmath>
#include <cstdint>

#include "core/job_config.h"

namespace isthmus::server {

// Computed in double once a commit: 1 - beta2^t cancels badly in float.
struct Moments {
  Moments(const core::OptimizerConfig& config, std::uint64_t commit) noexcept {
    const double t = static_cast<double>(commit);
    beta1 = static_cast<float>(config.beta1);
    rest1 = static_cast<float>(1 - double{config.beta1});
    beta2 = static_cast<float>(config.beta2);
    rest2 = static_cast<float>(1 - double{config.beta2});
    mean_correction = 1 / (1 - std::pow(double{config.beta1}, t));
    root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(double{config.beta2}, t)));
    epsilon = config.epsilon;
  }

  void add(float g, float& mean, float& square) const noexcept {
    mean = beta1 * mean + rest1 * g;
    square = beta2 * square + rest2 * g * g;
  }

  // mean / (sqrt(corrected square) + epsilon); times mean_correction it is the direction.
  float direction(float mean, float square) const noexcept {
    return mean / (std::sqrt(square) * root_correction + epsilon);
  }

  float beta1, rest1, beta2, rest2;
  double mean_correction;
  float root_correction;
  float epsilon;
};

}  // namespace isthmus::server
