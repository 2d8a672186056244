// The specification against definitions in double precision.

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "compression/kernels/float16.h"
#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

// value rounded to nearest even on the grid of a format with `digits` of mantissa and this smallest exponent.
double on_grid(double value, int digits, int min_exponent, double largest) {
  if (value == 0.0) return value;
  const int exponent = std::max(std::ilogb(value), min_exponent);
  const double step = std::ldexp(1.0, exponent - digits);
  return std::clamp(std::nearbyint(value / step) * step, -largest, largest);
}

double half_value(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const double fraction = (half & 1023) / 1024.0;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1.0 + fraction, exponent - 15);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Float16Test, EveryHalfWidensExactlyAndComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((half & kHalfExponent) == kHalfExponent) continue;
    ASSERT_EQ(double{from_half(half)}, half_value(half)) << bits;
    ASSERT_EQ(to_half(from_half(half)), half) << bits;
  }
}

TEST(Float16Test, EveryBf16WidensExactlyAndComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<std::uint16_t>(bits);
    if ((value & kBf16Exponent) == kBf16Exponent) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(from_bf16(value)), bits << 16);
    ASSERT_EQ(to_bf16(from_bf16(value)), value) << bits;
  }
}

TEST(Float16Test, RoundsToNearestEvenAndSaturates) {
  std::mt19937 random(3);
  const double bf16_max = std::ldexp(255.0, 120);
  for (int i = 0; i < 300000; ++i) {
    // All floats, and with odds of one half those at which rounding is tied or nearly so.
    std::uint32_t bits = random();
    if (i % 4 == 1) bits = (bits & 0xffffe000u) + 0x1000u + (random() % 3) - 1;
    if (i % 4 == 3) bits = (bits & 0xffff0000u) + 0x8000u + (random() % 3) - 1;
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(double{from_half(to_half(value))}, on_grid(value, 10, -14, 65504.0)) << bits;
    ASSERT_EQ(double{from_bf16(to_bf16(value))}, on_grid(value, 7, -126, bf16_max)) << bits;
  }
}

TEST(Float16Test, TheSmallestHalfIsWhereItIsSaidToBe) {
  EXPECT_EQ(to_half(kHalfSmallest), 1);
  EXPECT_EQ(to_half(std::nextafter(kHalfSmallest, 0.0f)), 0);
}

TEST(ScalarKernelsTest, QuantisesToNearestEvenAndClamps) {
  const std::vector<float> in{0.5f, 1.5f, -2.5f, 126.6f, 400.0f, -FLT_MAX, 0.49f, -0.0f};
  Bytes out(in.size());
  scalar_kernels().to_i8(in.data(), in.size(), 1.0f, out.data());
  EXPECT_EQ(out, bytes({0, 2, -2, 127, 127, -127, 0, 0}));
}

TEST(ScalarKernelsTest, AddsWithoutFusing) {
  // (1 + 2^-12)^2 needs 25 bits: fused, the 2^-24 would survive.
  const float value = 1.0f + 0x1p-12f;
  float sum = -1.0f - 0x1p-11f;
  scalar_kernels().add_f32(std::as_bytes(std::span(&value, 1)).data(), 1, value, &sum);
  EXPECT_EQ(sum, 0.0f);
}

TEST(ScalarKernelsTest, MaxAbsAndSelectByDefinition) {
  const std::vector<float> in{1.0f, -3.0f, 0.0f, 3.0f, 2.0f};
  EXPECT_EQ(scalar_kernels().max_abs(in.data(), in.size()), 3.0f);
  EXPECT_EQ(scalar_kernels().max_abs(nullptr, 0), 0.0f);
  std::vector<std::uint32_t> out(2, 99);
  EXPECT_EQ(scalar_kernels().select(in.data(), in.size(), 2.0f, out.data(), 2), 3u);
  EXPECT_EQ(out, (std::vector<std::uint32_t>{1, 3}));
}

}  // namespace
}  // namespace isthmus::compression
