// How many numbers there are of which size: enough to say, without looking at them again, how many reach a
// threshold and what is lost by leaving the rest out.
//
// A bin is a float's exponent and the first two bits of its mantissa, so bins are a quarter of a power of two
// wide. Counts are integers: merging gives the same in every order.
//
// Threads: one.
// Memory:  8 KiB each.
// Errors:  none. Numbers that are not finite count as the largest there are.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus::compression {

class MagnitudeHistogram {
 public:
  static constexpr std::size_t kBins = 1024;

  // All of them.
  void add(std::span<const float> values);

  // About `most` of them (REQUIRES: > 0), each standing for as many as it takes for the total to be the same:
  // a line of 16 neighbours at an irregular place of each stratum, as a regular stride would see some columns
  // of a matrix only.
  void add_sample(std::span<const float> values, std::size_t most);

  void merge(const MagnitudeHistogram& other);

  std::uint64_t total() const noexcept { return total_; }
  const std::array<std::uint64_t, kBins>& bins() const noexcept { return bins_; }

  // The magnitudes of a bin are in [lower_bound(bin), lower_bound(bin + 1)).
  static double lower_bound(std::size_t bin) noexcept;

  // About how many magnitudes reach `threshold`, and the sum of the squares of all.
  double at_least(double threshold) const noexcept;
  double energy() const noexcept;

  // How many reach `threshold`, which is in `bin`, if `here` reach the bin's lower bound and `next` its upper
  // one: their logarithms are taken to lie on a line, as in the tail of a distribution they nearly do.
  static double reaching(double threshold, std::size_t bin, double here, double next) noexcept;

  // The mean square of a bin's magnitudes up to `threshold`, and of all of them; taken to be spread evenly.
  static double mean_square(std::size_t bin, double threshold) noexcept;
  static double mean_square(std::size_t bin) noexcept { return mean_square(bin, lower_bound(bin + 1)); }

  bool operator==(const MagnitudeHistogram&) const = default;

 private:
  void add(std::span<const float> values, std::uint64_t weight);

  std::array<std::uint64_t, kBins> bins_{};
  std::uint64_t total_ = 0;
};

}  // namespace isthmus::compression
