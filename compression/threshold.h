// From which magnitude on topk keeps an element.
//
// Threads: any.
// Memory:  a sample is 256 KiB of scratch; the rest is on the stack.
// Errors:  a difference that is not finite, from who looks at all of them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "compression/codec.h"
#include "compression/kernels/kernels.h"

namespace isthmus::compression {

// A sample: this many elements.
inline constexpr std::size_t kSampleElements = 64 * 1024;

// The magnitude of about the `rank`-th largest element, from a sample; `where` says of which places, each
// time others. REQUIRES: 0 < rank <= change.size(), change.size() >= kSampleElements.
float sampled_threshold(const Change& change, std::size_t rank, std::uint64_t where);

// What keeps exactly the k largest: all above `magnitude`, and of those equal to it the first `ties`.
struct Cut {
  float magnitude = 0.0f;
  std::size_t ties = 0;
};
// By counting, in four passes. nullopt when a difference is not finite. REQUIRES: 0 < k <= change.size().
std::optional<Cut> exact_cut(const Change& change, std::size_t k, const Kernels& kernels);

// How fast a tail falls: the count above a threshold goes like threshold^-fall. From the elements above one,
// and the sum of log2(magnitude / threshold) over them.
double tail_fall(double count, double log2_sum);

// The threshold that lets `ratio` times fewer pass.
float corrected_threshold(float threshold, double fall, double ratio);

}  // namespace isthmus::compression
