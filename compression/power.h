// Powers by plain arithmetic: the C library's pow differs in its last bits from one library, and from one
// device, to the next, and a threshold must not.
//
// Threads: any.  Memory: none.  Errors: none.

#pragma once

#include <bit>
#include <cstdint>

namespace isthmus::compression {

// log2 of a normal number: the series of 2 atanh((m - 1) / (m + 1)) for a mantissa within a factor of sqrt 2
// of 1.
constexpr double log2_of(double x) noexcept {
  constexpr double log2_e = 1.4426950408889634;
  constexpr std::uint64_t mantissa_bits = 0x000fffffffffffffu, one = 0x3ff0000000000000u;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & mantissa_bits) | one);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent + 2 * log2_e * s * sum;
}

// 2^x for |x| < 1000: the exponential series for what is left of the nearest integer.
constexpr double exp2_of(double x) noexcept {
  constexpr double ln2 = 0.69314718055994531;
  const int whole = static_cast<int>(x < 0 ? x - 0.5 : x + 0.5);
  const double rest = (x - whole) * ln2;
  double sum = 1;
  for (int k = 14; k >= 1; --k) sum = 1 + sum * rest / k;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(whole + 1023) << 52);
}

// REQUIRES: a normal base > 0, a result within 2^±1000.
constexpr double power_of(double base, double exponent) noexcept { return exp2_of(exponent * log2_of(base)); }

}  // namespace isthmus::compression
