#include "compression/threshold.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/random.h"

namespace isthmus::compression {
namespace {

// A sample's elements come in lines, as caches have them.
constexpr std::size_t kLine = 16;
constexpr std::size_t kLines = kSampleElements / kLine;

// A magnitude's 31 bits are looked at 11, 10 and 10 at a time: floats are ordered as their bits are.
constexpr unsigned kShifts[] = {20, 10, 0};
constexpr std::size_t kBins = 2048;
using Histogram = std::array<std::uint32_t, kBins>;

std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

// The bits of the `rank`-th largest magnitude, found digit by digit: `for_each(visit)` shows all values, as
// often as it is called. `rank` becomes the rank among those equal to it. False when for_each() gave up.
template <typename ForEach>
bool find_rank(ForEach for_each, std::size_t& rank, std::uint32_t& found) {
  found = 0;
  for (std::size_t level = 0; level < std::size(kShifts); ++level) {
    const unsigned shift = kShifts[level];
    const unsigned above = level == 0 ? 31 : kShifts[level - 1];
    Histogram counts{};
    const bool complete = for_each([&](float value) {
      const std::uint32_t bits = magnitude_bits(value);
      if (bits >> above == found >> above) ++counts[bits >> shift & ((1u << (above - shift)) - 1)];
    });
    if (!complete) return false;
    std::size_t bin = kBins - 1;
    while (bin > 0 && counts[bin] < rank) rank -= counts[bin--];
    found |= static_cast<std::uint32_t>(bin) << shift;
  }
  return true;
}

}  // namespace

// The elements are cut into strata and a cache line is read at an irregular place of each: a regular stride
// would see only some columns of a matrix.
float sampled_threshold(const Change& change, std::size_t rank, std::uint64_t where) {
  std::vector<float> sample(kSampleElements);
  const std::size_t stratum = change.size() / kLines;
  for (std::size_t line = 0; line < kLines; ++line) {
    const std::size_t first =
        line * stratum + core::spread_bits(where * kLines + line) % (stratum - kLine + 1);
    float* to = sample.data() + line * kLine;
    std::memcpy(to, change.values.data() + first, kLine * sizeof(float));
    if (!change.is_difference()) continue;
    for (std::size_t i = 0; i < kLine; ++i) to[i] -= change.view[first + i];
  }
  const double share = static_cast<double>(rank) / static_cast<double>(change.size());
  auto sample_rank = static_cast<std::size_t>(std::lround(share * static_cast<double>(sample.size())));
  sample_rank = std::clamp<std::size_t>(sample_rank, 1, sample.size());
  std::uint32_t bits;
  find_rank(
      [&](auto visit) {
        for (const float value : sample) visit(value);
        return true;
      },
      sample_rank, bits);
  return std::bit_cast<float>(bits);
}

std::optional<Cut> exact_cut(const Change& change, std::size_t k, const Kernels& kernels) {
  constexpr std::size_t piece_elements = 2048;
  float difference[piece_elements];
  const auto for_each = [&](auto visit) {
    for (std::size_t at = 0; at < change.size(); at += piece_elements) {
      const std::size_t n = std::min(piece_elements, change.size() - at);
      const float* piece = change.values.data() + at;
      if (change.is_difference()) {
        if (!kernels.subtract(piece, change.view.data() + at, n, difference)) return false;
        piece = difference;
      }
      for (std::size_t i = 0; i < n; ++i) visit(piece[i]);
    }
    return true;
  };
  std::size_t rank = k;
  std::uint32_t bits;
  if (!find_rank(for_each, rank, bits)) return std::nullopt;
  return Cut{std::bit_cast<float>(bits), rank};
}

// Where the count goes like threshold^-fall, log(magnitude / threshold) has the mean 1 / fall: Hill's
// estimator.
double tail_fall(double count, double log2_sum) {
  constexpr double ln2 = 0.69314718055994531;
  constexpr double least = 0.5, most = 40.0;
  if (log2_sum * ln2 * most <= count) return most;
  return std::max(count / (log2_sum * ln2), least);
}

float corrected_threshold(float threshold, double fall, double ratio) {
  return threshold * static_cast<float>(std::pow(ratio, 1.0 / fall));
}

}  // namespace isthmus::compression
