#include "compression/magnitude_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/random.h"

namespace isthmus::compression {
namespace {

constexpr int kBinShift = 21;  // 23 bits of mantissa, of which the first two count.
constexpr std::uint32_t kMagnitudeBits = 0x7fffffffu;
constexpr std::size_t kLine = 16;

}  // namespace

void MagnitudeHistogram::add(std::span<const float> values, std::uint64_t weight) {
  for (const float value : values)
    bins_[(std::bit_cast<std::uint32_t>(value) & kMagnitudeBits) >> kBinShift] += weight;
  total_ += weight * values.size();
}

void MagnitudeHistogram::add(std::span<const float> values) { add(values, 1); }

void MagnitudeHistogram::add_sample(std::span<const float> values, std::size_t most) {
  const std::size_t lines = values.size() / kLine;
  const std::size_t stratum = (values.size() + most - 1) / most;  // In lines.
  if (stratum <= 1) return add(values, 1);
  for (std::size_t first = 0; first < lines; first += stratum) {
    const std::size_t there = std::min(stratum, lines - first);
    add(values.subspan((first + core::spread_bits(first) % there) * kLine, kLine), there);
  }
  add(values.subspan(lines * kLine), 1);
}

void MagnitudeHistogram::merge(const MagnitudeHistogram& other) {
  for (std::size_t i = 0; i < kBins; ++i) bins_[i] += other.bins_[i];
  total_ += other.total_;
}

double MagnitudeHistogram::lower_bound(std::size_t bin) noexcept {
  // The bits of infinity are those of the number that would follow the largest float, were there one.
  const auto bits = static_cast<std::uint32_t>(bin) << kBinShift;
  return bits < 0x7f800000u ? double{std::bit_cast<float>(bits)} : 0x1p128;
}

double MagnitudeHistogram::reaching(double threshold, std::size_t bin, double here, double next) noexcept {
  const double lower = lower_bound(bin);
  const double upper = lower_bound(bin + 1);
  const double share = upper > lower ? std::clamp((threshold - lower) / (upper - lower), 0.0, 1.0) : 1.0;
  return next > 0 ? here * std::pow(next / here, share) : here * (1 - share);
}

double MagnitudeHistogram::mean_square(std::size_t bin, double threshold) noexcept {
  const double lower = lower_bound(bin);
  return (lower * lower + lower * threshold + threshold * threshold) / 3;
}

double MagnitudeHistogram::at_least(double threshold) const noexcept {
  double above = 0;
  for (std::size_t i = kBins; i-- > 0;) {
    const double here = above + static_cast<double>(bins_[i]);
    if (threshold > lower_bound(i)) return here > above ? reaching(threshold, i, here, above) : above;
    above = here;
  }
  return above;
}

double MagnitudeHistogram::energy() const noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < kBins; ++i) sum += static_cast<double>(bins_[i]) * mean_square(i);
  return sum;
}

}  // namespace isthmus::compression
