// What one walk over all elements found above a threshold, and which threshold to try next.
//
// Pure, and the same for the CPU and for CUDA: the two must choose the same elements.
//
// Threads: any.  Memory: none.  Errors: none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "compression/kernels/by_value.h"
#include "compression/power.h"

namespace isthmus::compression {

// Of fewer elements even the right threshold seldom keeps 0.9 to 1.1 times as many: they are counted.
inline constexpr std::uint64_t kFewestByThreshold = 64;

// After how many elements a pass that has found too many looks up, and stops.
inline constexpr std::uint64_t kPassPiece = 1024;

struct TopkTarget {
  std::uint64_t elements = 0;
  std::uint64_t wanted = 0;
  std::uint64_t most = 0;  // More than these do not fit.
  float least = 0.0f;      // Of a magnitude that is worth sending.
};

// A tenth more than wanted fits too.
constexpr std::uint64_t most_kept(std::uint64_t wanted, std::uint64_t elements) noexcept {
  return smaller(wanted + wanted / 10, elements);
}

// Whether a state's threshold may be tried.
constexpr bool is_usable(float threshold, const TopkTarget& target) noexcept {
  return threshold >= target.least && threshold <= std::numeric_limits<float>::max();  // False for NaN.
}

struct TopkPass {
  float threshold = 0.0f;
  std::uint64_t count = 0;      // Kept, at most `most`.
  std::uint64_t log_sum = 0;    // Of those, the bits of the magnitude less the threshold's: nearly
                                // log2(magnitude / threshold), in 2^-23.
  std::uint64_t looked_at = 0;  // Fewer than all: too many were worth keeping.
  bool too_many = false;
  bool finite = true;
};

// How fast a tail falls: the count above a threshold goes like threshold^-fall. From the elements above one,
// and the sum of log2(magnitude / threshold) over them. Where that holds, the logarithm has the mean 1 /
// fall: Hill's estimator.
constexpr double tail_fall(double count, double log2_sum) noexcept {
  constexpr double ln2 = 0.69314718055994531;
  constexpr double least = 0.5, most = 40.0;
  if (log2_sum * ln2 * most <= count) return most;
  return larger(count / (log2_sum * ln2), least);
}

// The threshold that lets `ratio` times fewer pass.
constexpr float corrected_threshold(float threshold, double fall, double ratio) noexcept {
  return threshold * static_cast<float>(power_of(ratio, 1.0 / fall));
}

// Whether what a pass has kept may be sent: too few are enough where no lower threshold is worth it.
constexpr bool fits(const TopkPass& pass, const TopkTarget& target) noexcept {
  const bool too_few = pass.count * 10 < target.wanted * 9;
  return pass.finite && !pass.too_many && (!too_few || pass.threshold <= target.least);
}

// A pass that stopped early, or kept next to nothing, says little of what would fit.
constexpr bool is_telling(const TopkPass& pass, const TopkTarget& target) noexcept {
  return pass.count * 8 >= target.wanted && pass.looked_at * 2 >= target.elements;
}

// 0: unknown.
constexpr float next_threshold(const TopkPass& pass, const TopkTarget& target) noexcept {
  if (pass.count == 0) return 0.0f;
  const auto count = static_cast<double>(pass.count);
  const double estimate = count * static_cast<double>(target.elements) / static_cast<double>(pass.looked_at);
  const double fall = tail_fall(count, static_cast<double>(pass.log_sum) * 0x1p-23);
  const double ratio = estimate / static_cast<double>(target.wanted);
  return larger(corrected_threshold(pass.threshold, fall, ratio), target.least);
}

}  // namespace isthmus::compression
