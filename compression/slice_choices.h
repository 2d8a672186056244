// What a slice may be given, and what it would lose by it: estimated from the histogram of its change,
// without looking at its elements.
//
// Threads: immutable.
// Memory:  16 KiB each.
// Errors:  none.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/magnitude_histogram.h"
#include "core/job_config.h"

namespace isthmus::compression {

// What there is to send of one slice.
struct SliceChange {
  std::uint64_t elements = 0;
  MagnitudeHistogram magnitudes;  // Of parameters - view; may be a sample.
  bool dense = false;             // A small tensor, a bias, a norm: always fp32.
};

struct SliceChoice {
  core::CodecConfig config;
  std::uint64_t bytes = 0;  // At most (Codec::max_encoded_bytes).
  double loss = 0;          // The sum of squares of (change - decoded).
};

class SliceChoices {
 public:
  // A sparse choice keeps at least `min_keep` of the elements, and one of them.
  // REQUIRES: `change` outlives this.
  SliceChoices(const SliceChange& change, double min_keep);

  bool always_dense() const noexcept { return change_.dense; }
  double energy() const noexcept { return energy_; }  // The change's sum of squares.

  // The quantisers, from the one with the fewest bytes to fp32.
  std::span<const SliceChoice> dense() const noexcept { return dense_; }

  // topk, as int8, of what reaches the threshold.
  SliceChoice sparse(double threshold) const;

  // What an element takes there: of one kept in a hundred, but it hardly depends on how many are.
  static double bytes_of_kept();

 private:
  struct DenseKind;
  static const DenseKind kDense[];

  double count(std::size_t bin) const;
  double largest_of(double block) const;
  double loss_of(const DenseKind& kind) const;
  double rounding_of_kept(double kept) const;

  const SliceChange& change_;
  double scale_;
  double energy_ = 0;
  std::uint64_t least_kept_ = 1;
  std::array<double, MagnitudeHistogram::kBins> below_{};      // The energy of all bins below.
  std::array<double, MagnitudeHistogram::kBins + 1> above_{};  // The count of this bin and all above.
  std::vector<SliceChoice> dense_;
};

}  // namespace isthmus::compression
