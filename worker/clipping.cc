#include "worker/clipping.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isthmus::worker {
namespace {

// What brings a length down to a limit; 0 is no limit.
double scale_to(double length, float limit) { return limit > 0.0f && length > limit ? limit / length : 1.0; }

}  // namespace

double square_sum(std::span<const float> values) noexcept {
  // Partial sums that do not wait for each other; their number is the same everywhere, so the result is too.
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i < values.size(); ++i, ++lane) sums[lane] += double{values[i]} * values[i];
  double sum = 0.0;
  for (const double part : sums) sum += part;
  return sum;
}

std::vector<float> clip_scales(std::span<const Gradient> gradients, const ClipConfig& clip) {
  if (clip.norm <= 0.0f && clip.tensor_norm <= 0.0f) return {};
  std::vector<double> scales;
  double whole = 0.0;
  for (const Gradient& gradient : gradients) {
    const double squares = square_sum(gradient.values);
    if (!std::isfinite(squares)) return {};
    const double scale = scale_to(std::sqrt(squares), clip.tensor_norm);
    scales.push_back(scale);
    whole += squares * scale * scale;
  }
  const double common = scale_to(std::sqrt(whole), clip.norm);
  std::vector<float> result;
  for (const double scale : scales) {
    // Never 0: that would not be a gradient.
    result.push_back(std::max(static_cast<float>(scale * common), std::numeric_limits<float>::min()));
  }
  const bool clipped = std::ranges::any_of(result, [](float scale) { return scale < 1.0f; });
  return clipped ? result : std::vector<float>();
}

}  // namespace isthmus::worker
