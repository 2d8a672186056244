// By how much the gradients of one push are scaled down.
//
// The servers multiply, as they add: no gradient is changed or copied here. Only a worker sees all tensors of
// a step, a shard never does; so what is clipped is each worker's gradient, not their mean.
//
// Threads: pure.  Memory: a float for each gradient.  Errors: none.

#pragma once

#include <span>
#include <vector>

#include "isthmus/client.h"

namespace isthmus::worker {

// Sum of squares, in double precision and always in the same order.
double square_sum(std::span<const float> values) noexcept;

// A factor in (0, 1] for each gradient; empty when nothing is clipped. Of gradients that are not finite
// nothing is scaled: they are sent to be refused.
std::vector<float> clip_scales(std::span<const Gradient> gradients, const ClipConfig& clip);

}  // namespace isthmus::worker
