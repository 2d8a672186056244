// What becomes of one element: the specification's arithmetic, which the scalar table and the CUDA kernels
// run as it stands, and which the vector tables reproduce.
//
// Threads: any.  Memory: none.  Errors: none.

#pragma once

#include <bit>
#include <cstdint>

#include "compression/kernels/blocks.h"
#include "compression/kernels/by_value.h"
#include "compression/kernels/float16.h"

namespace isthmus::compression {

constexpr std::uint32_t magnitude_bits(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value) & ~kSignBit;
}

constexpr bool is_finite(float value) noexcept { return magnitude_bits(value) < 0x7f800000u; }

// sum += weight * value, where no zero has a sign.
constexpr void add_decoded(float value, float weight, float& sum) noexcept {
  const float decoded = value + 0.0f;
  sum += weight * decoded;
}

// Floats from 2^23 to 2^24 are the integers: adding 1.5 * 2^23 rounds to nearest even.
constexpr int quantise(float scaled, int limit) noexcept {
  constexpr float rounder = 12582912.0f;
  return limited(static_cast<int>((scaled + rounder) - rounder), -limit, limit);
}

// Up with the probability of what is above the floor.
constexpr int quantise(float scaled, int limit, std::uint16_t random) noexcept {
  const float moved = scaled + uniform_of(random);
  const int whole = static_cast<int>(moved);
  const int floor = static_cast<float>(whole) > moved ? whole - 1 : whole;
  return limited(floor, -limit, limit);
}

constexpr float int8_value(std::int8_t code, float scale) noexcept {
  return static_cast<float>(code) * scale;
}

// The low four bits are the code.
constexpr float int4_value(unsigned code, float scale) noexcept {
  return static_cast<float>(static_cast<int>(code ^ 8u) - 8) * scale;
}

// Code c of 1 to 7 is 2^(c - 7). Half an ulp of the exponent carries into it from 1.5 on, so the exponent
// rounds to the nearest power of two; only from 0.75 * 2^-6 down to 2^-7 is the nearest one, 2^-6, not
// reached.
constexpr unsigned fp4_code(float scaled) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(scaled);
  const std::uint32_t magnitude = bits & ~kSignBit;
  const int exponent = static_cast<int>((magnitude + 0x00400000u) >> 23);
  const int least = magnitude >= kFp4LeastBits ? 1 : 0;
  const auto code = static_cast<unsigned>(limited(exponent - 120, least, 7));
  return code == 0 ? 0u : code | (bits >> 28 & 8u);
}

constexpr float fp4_value(unsigned code, float scale) noexcept {
  const unsigned power = code & 7u;
  const float magnitude = power == 0 ? 0.0f : std::bit_cast<float>((power + 120u) << 23) * scale;
  return (code & 8u) != 0 ? -magnitude : magnitude;
}

// What a block of sign adds up.
constexpr float sign_part(float value) noexcept {
  return std::bit_cast<float>(magnitude_bits(value)) * 0x1p-9f;
}
constexpr float sign_value(bool negative, float scale) noexcept { return negative ? -scale : scale; }

// A rotation's first and last step.
constexpr float flipped(float value, bool minus, float limit, float factor) noexcept {
  return limited(value, -limit, limit) * (minus ? -factor : factor);
}

}  // namespace isthmus::compression
