// The optimizers, and the pass over memory that most of them are.
//
// Threads: pure functions.  Memory: the caller's arrays.  Errors: as optimizer.h.

#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>

#include "server/optimizer.h"

namespace isthmus::server {

std::unique_ptr<const Optimizer> make_sgd(const core::OptimizerConfig& config);  // sgd, momentum, nesterov
std::unique_ptr<const Optimizer> make_adagrad(const core::OptimizerConfig& config);  // adagrad
std::unique_ptr<const Optimizer> make_adam(const core::OptimizerConfig& config);     // adam, adamw, yogi
std::unique_ptr<const Optimizer> make_lamb(const core::OptimizerConfig& config);     // lamb

// parameters[i] = rule(parameters[i], gradient[i], state[i]...), whose state it changes. Whether all
// parameters are finite afterwards: asked here, because a pass of its own would cost a sixth more.
//
// The pointers are restrict, so that the compiler sees that nothing else changes and vectorises the loop.
template <typename Rule, std::same_as<float>... State>
bool update(std::span<float> parameters, std::span<const float> gradient, const Rule& rule,
            State* __restrict... state) {
  constexpr std::uint32_t exponent = 0x7f800000u;
  float* __restrict p = parameters.data();
  const float* __restrict g = gradient.data();
  std::uint32_t unbounded = 0;
  for (std::size_t i = 0, n = parameters.size(); i < n; ++i) {
    p[i] = rule(p[i], g[i], state[i]...);
    unbounded |= (std::bit_cast<std::uint32_t>(p[i]) & exponent) == exponent ? 1u : 0u;
  }
  return unbounded == 0;
}

}  // namespace isthmus::server
