// One float to and from 16 bits, in integer arithmetic: what every backend must reproduce.
//
// Narrowing rounds to nearest even and saturates: a value beyond the format's largest finite value becomes
// that value, never Inf. Widening is exact for every finite pattern; an Inf or NaN pattern, which no encoder
// writes, is read as the largest finite value: so no record has to be searched for them before it is added.
// No step makes or reads a subnormal float, so a flush-to-zero mode changes nothing.
//
// Threads: any.  Memory: none.  Errors: none.

#pragma once

#include <bit>
#include <cstdint>

#include "compression/kernels/by_value.h"

namespace isthmus::compression {

inline constexpr std::uint32_t kSignBit = 0x80000000u;
inline constexpr std::uint32_t kHalfMaxBits = 0x477fe000u;        // 65504.0f
inline constexpr std::uint32_t kHalfMinNormalBits = 0x38800000u;  // 2^-14
inline constexpr std::uint32_t kHalfBias = 112u << 23;            // 127 - 15, in a float's exponent field
inline constexpr std::uint32_t kBf16MaxBits = 0x7f7f0000u;        // the largest finite bf16
inline constexpr std::uint16_t kHalfMax = 0x7bff;
inline constexpr std::uint16_t kBf16Max = 0x7f7f;

// The smallest magnitude that is not zero in fp16: just above half of 2^-24.
inline constexpr float kHalfSmallest = std::bit_cast<float>(0x33000001u);

constexpr std::uint16_t to_half(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & kSignBit;
  const std::uint32_t magnitude = smaller(bits ^ sign, kHalfMaxBits);
  std::uint32_t half;
  if (magnitude < kHalfMinNormalBits) {
    // 0.5f has an ulp of 2^-24, fp16's subnormal step: the addition does the rounding.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
           std::bit_cast<std::uint32_t>(0.5f);
  } else {
    half = (magnitude - kHalfBias + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(half | (sign >> 16));
}

constexpr float from_half(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t shifted = smaller<std::uint32_t>(half & 0x7fffu, kHalfMax) << 13;
  std::uint32_t magnitude = shifted + kHalfBias;
  if (shifted < (1u << 23)) {
    // A subnormal half: give it a hidden bit, then subtract what that added.
    const std::uint32_t one = kHalfBias + (1u << 23);
    magnitude = std::bit_cast<std::uint32_t>(std::bit_cast<float>(shifted + one) - std::bit_cast<float>(one));
  }
  return std::bit_cast<float>(magnitude | sign);
}

constexpr std::uint16_t to_bf16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & kSignBit;
  const std::uint32_t magnitude = smaller(bits ^ sign, kBf16MaxBits);
  return static_cast<std::uint16_t>((magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16 | sign >> 16);
}

constexpr float from_bf16(std::uint16_t value) noexcept {
  const std::uint32_t sign = value & 0x8000u;
  const std::uint32_t magnitude = smaller<std::uint32_t>(value & 0x7fffu, kBf16Max);
  return std::bit_cast<float>((magnitude | sign) << 16);
}

}  // namespace isthmus::compression
