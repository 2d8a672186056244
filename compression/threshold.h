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
#include "core/random.h"

namespace isthmus::compression {

// A sample: this many elements, in lines, as caches have them.
inline constexpr std::size_t kSampleElements = 64 * 1024;
inline constexpr std::size_t kSampleLine = 16;
inline constexpr std::size_t kSampleLines = kSampleElements / kSampleLine;

// Where a line of the sample `where` begins. The elements are cut into strata and each gives a line from an
// irregular place: a regular stride would see only some columns of a matrix.
constexpr std::size_t sample_place(std::size_t line, std::size_t elements, std::uint64_t where) noexcept {
  const std::size_t stratum = elements / kSampleLines;
  return line * stratum + core::spread_bits(where * kSampleLines + line) % (stratum - kSampleLine + 1);
}

// Which of the sample's elements has about the rank that `rank` is among all.
std::size_t sample_rank(std::size_t rank, std::size_t elements) noexcept;

// A rank is found digit by digit: floats are ordered as their bits are, and a magnitude's 31 bits are looked
// at 11, 10 and 10 at a time. Digit d is the bits from rank_shift(d) up to rank_top(d).
inline constexpr unsigned kRankDigits = 3;
inline constexpr std::size_t kRankBins = 2048;
constexpr unsigned rank_shift(unsigned digit) noexcept { return digit == 0 ? 20 : digit == 1 ? 10 : 0; }
constexpr unsigned rank_top(unsigned digit) noexcept { return digit == 0 ? 31 : rank_shift(digit - 1); }
// Whether bits agree with those `found` above a digit, and the digit itself.
constexpr bool has_rank_prefix(std::uint32_t bits, std::uint32_t found, unsigned digit) noexcept {
  return bits >> rank_top(digit) == found >> rank_top(digit);
}
constexpr std::uint32_t rank_digit(std::uint32_t bits, unsigned digit) noexcept {
  return bits >> rank_shift(digit) & ((1u << (rank_top(digit) - rank_shift(digit))) - 1);
}

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

}  // namespace isthmus::compression
