// What a late gradient would have been at the parameters as they are now: DC-ASGD (Zheng et al., ICML 2017).
//
// g + lambda g^2 (w - w_then), where g^2 stands for the diagonal of the Hessian and w_then are the parameters
// that the worker computed from. Adaptive: lambda / sqrt(mean of g^2 + 1e-7) in the place of lambda.
//
// Threads: pure.  Memory: the caller's.  Errors: none.

#pragma once

#include <span>

#include "core/job_config.h"

namespace isthmus::server {

// In place. The correction is never longer than the gradient itself: far from where the worker looked, a
// second-order guess is worth nothing and may point back. `mean_squares` (adaptive; else not looked at) is
// as long as the others; where it is 0 nothing is known yet, and this gradient's square is the mean: from
// zeros the first steps would be over-corrected.
void compensate(const core::CompensationConfig& config, std::span<const float> now,
                std::span<const float> then, std::span<float> mean_squares, std::span<float> gradient);

}  // namespace isthmus::server
