#include "compression/slice_choices.h"

#include <algorithm>
#include <cmath>

#include "compression/codec.h"

namespace isthmus::compression {

using core::CodecConfig;
using core::CodecKind;

// A quantiser rounds to multiples of (largest magnitude of its block) / levels; levels 0: it rounds each
// element by itself, and what that loses is a share of the energy.
struct SliceChoices::DenseKind {
  CodecKind kind;
  double block;
  double levels;
  double nmse;
};
const SliceChoices::DenseKind SliceChoices::kDense[] = {
    {CodecKind::kInt4, 64, 7, 0},
    {CodecKind::kInt8, 256, 127, 0},
    {CodecKind::kFp16, 0, 0, 4.3e-8},
    {CodecKind::kFp32, 0, 0, 0},
};

namespace {

std::uint64_t bytes_of(const CodecConfig& config, std::uint64_t elements) {
  return make_codec(config)->max_encoded_bytes(elements);
}

// int8 for what is kept: next to what is left out, its error is nothing.
CodecConfig topk(double keep) {
  CodecConfig config{CodecKind::kTopk};
  config.keep = keep;
  config.values = core::KeptValues::kInt8;
  return config;
}

// A sample's counts are of fewer elements than there are.
double scale_of(const SliceChange& change) {
  const std::uint64_t total = change.magnitudes.total();
  return total == 0 ? 0.0 : static_cast<double>(change.elements) / static_cast<double>(total);
}

std::size_t bin_of(double magnitude) {
  std::size_t low = 0;
  std::size_t high = MagnitudeHistogram::kBins;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (MagnitudeHistogram::lower_bound(middle) <= magnitude ? low : high) = middle;
  }
  return low;
}

// Of one element, by rounding to the nearest of two that are a step apart.
double rounding_loss(double step) { return step * step / 12; }

}  // namespace

SliceChoices::SliceChoices(const SliceChange& change, double min_keep)
    : change_(change), scale_(scale_of(change)) {
  for (std::size_t i = 0; i < MagnitudeHistogram::kBins; ++i) {
    below_[i] = energy_;
    energy_ += count(i) * MagnitudeHistogram::mean_square(i);
  }
  double above = 0;
  for (std::size_t i = MagnitudeHistogram::kBins; i-- > 0;) above_[i] = above += count(i);
  const double least = std::ceil(min_keep * static_cast<double>(change.elements));
  least_kept_ =
      static_cast<std::uint64_t>(std::clamp(least, 1.0, std::max(1.0, static_cast<double>(change.elements))));
  for (const DenseKind& kind : kDense) {
    const CodecConfig config{kind.kind};
    dense_.push_back({config, bytes_of(config, change.elements), loss_of(kind)});
  }
}

SliceChoice SliceChoices::sparse(double threshold) const {
  const std::size_t bin = bin_of(threshold);
  const double next = above_[bin + 1];
  const double above =
      above_[bin] > next ? MagnitudeHistogram::reaching(threshold, bin, above_[bin], next) : next;
  const double left = std::max(threshold, MagnitudeHistogram::lower_bound(bin));
  const double lost = below_[bin] + (above_[bin] - above) * MagnitudeHistogram::mean_square(bin, left);
  const auto kept = std::clamp(static_cast<std::uint64_t>(std::llround(above)),
                               std::min(least_kept_, change_.elements), change_.elements);
  const double share = static_cast<double>(std::max<std::uint64_t>(kept, 1)) /
                       static_cast<double>(std::max<std::uint64_t>(change_.elements, 1));
  const CodecConfig config = topk(std::min(share, 1.0));
  return {config, bytes_of(config, change_.elements), lost + rounding_of_kept(above)};
}

double SliceChoices::bytes_of_kept() {
  constexpr std::uint64_t elements = 1 << 20;
  const CodecConfig config = topk(0.01);
  return static_cast<double>(bytes_of(config, elements)) / (config.keep * elements);
}

double SliceChoices::count(std::size_t bin) const {
  return scale_ * static_cast<double>(change_.magnitudes.bins()[bin]);
}

// The magnitude that a block's largest one has typically: one in `block` elements reaches it.
double SliceChoices::largest_of(double block) const {
  const double aim = std::max(static_cast<double>(change_.elements) / block, 1.0);
  std::size_t bin = MagnitudeHistogram::kBins - 1;
  while (bin > 0 && above_[bin] < aim) --bin;
  return (MagnitudeHistogram::lower_bound(bin) + MagnitudeHistogram::lower_bound(bin + 1)) / 2;
}

// What int8 loses of what topk keeps. Its blocks are of 256 kept ones, hence of more elements.
double SliceChoices::rounding_of_kept(double kept) const {
  if (kept < 1) return 0;
  const double block = 256 * static_cast<double>(change_.elements) / kept;
  return std::min(kept * rounding_loss(largest_of(block) / 127), energy_);
}

double SliceChoices::loss_of(const DenseKind& kind) const {
  if (kind.levels == 0) return kind.nmse * energy_;
  // An element that is smaller than that is lost whole.
  const double rounding = rounding_loss(largest_of(kind.block) / kind.levels);
  double loss = 0;
  for (std::size_t i = 0; i < MagnitudeHistogram::kBins; ++i)
    loss += count(i) * std::min(MagnitudeHistogram::mean_square(i), rounding);
  return loss;
}

}  // namespace isthmus::compression
