#include "compression/threshold.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "compression/kernels/codes.h"
#include "core/random.h"

namespace isthmus::compression {
namespace {

using Histogram = std::array<std::uint32_t, kRankBins>;

// The bits of the `rank`-th largest magnitude, found digit by digit: `for_each(visit)` shows all values, once
// for each digit; visit() says which count for it, and no others do for those that follow. `rank` becomes the
// rank among those equal to it. False when for_each() gave up.
template <typename ForEach>
bool find_rank(ForEach for_each, std::size_t& rank, std::uint32_t& found) {
  found = 0;
  for (unsigned digit = 0; digit < kRankDigits; ++digit) {
    Histogram counts{};
    const bool complete = for_each([&](float value) {
      const std::uint32_t bits = magnitude_bits(value);
      const bool counts_here = has_rank_prefix(bits, found, digit);
      if (counts_here) ++counts[rank_digit(bits, digit)];
      return counts_here;
    });
    if (!complete) return false;
    std::size_t bin = kRankBins - 1;
    while (bin > 0 && counts[bin] < rank) rank -= counts[bin--];
    found |= static_cast<std::uint32_t>(bin) << rank_shift(digit);
  }
  return true;
}

}  // namespace

std::size_t sample_rank(std::size_t rank, std::size_t elements) noexcept {
  const double share = static_cast<double>(rank) / static_cast<double>(elements);
  const auto sample_rank =
      static_cast<std::size_t>(std::lround(share * static_cast<double>(kSampleElements)));
  return std::clamp<std::size_t>(sample_rank, 1, kSampleElements);
}

float sampled_threshold(const Change& change, std::size_t rank, std::uint64_t where) {
  std::vector<float> sample(kSampleElements);
  // All lines are asked for before the first is needed: one after another, each would wait for memory.
  std::array<std::uint32_t, kSampleLines> places;
  for (std::size_t line = 0; line < kSampleLines; ++line) {
    const std::size_t first = sample_place(line, change.size(), where);
    places[line] = static_cast<std::uint32_t>(first);
    for (const std::size_t at : {first, first + kSampleLine - 1}) {
      __builtin_prefetch(change.values.data() + at);
      if (change.is_difference()) __builtin_prefetch(change.view.data() + at);
    }
  }
  for (std::size_t line = 0; line < kSampleLines; ++line) {
    const std::size_t first = places[line];
    float* to = sample.data() + line * kSampleLine;
    std::memcpy(to, change.values.data() + first, kSampleLine * sizeof(float));
    if (!change.is_difference()) continue;
    for (std::size_t i = 0; i < kSampleLine; ++i) to[i] -= change.view[first + i];
  }
  std::size_t left = sample_rank(rank, change.size());
  std::uint32_t bits;
  std::size_t count = sample.size();
  find_rank(
      [&](auto visit) {
        // Who does not count for a digit does not for the next: each pass is over what the last one left.
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const float value = sample[i];
          sample[kept] = value;
          kept += visit(value) ? 1 : 0;
        }
        count = kept;
        return true;
      },
      left, bits);
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

}  // namespace isthmus::compression
