// The specification against definitions in double precision.

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "compression/kernels/blocks.h"
#include "compression/kernels/float16.h"
#include "core/random.h"
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
    if ((half & 0x7fff) > kHalfMax) continue;
    ASSERT_EQ(double{from_half(half)}, half_value(half)) << bits;
    ASSERT_EQ(to_half(from_half(half)), half) << bits;
  }
}

TEST(Float16Test, EveryBf16WidensExactlyAndComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<std::uint16_t>(bits);
    if ((value & 0x7fff) > kBf16Max) continue;
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

TEST(Float16Test, InfAndNanPatternsAreTheLargest) {
  for (const std::uint16_t bits : {0x7c00, 0x7c01, 0x7fff}) {
    EXPECT_EQ(from_half(bits), 65504.0f);
    EXPECT_EQ(from_half(static_cast<std::uint16_t>(bits | 0x8000)), -65504.0f);
  }
  EXPECT_EQ(from_bf16(0x7f80), std::bit_cast<float>(0x7f7f0000u));
  EXPECT_EQ(from_bf16(0xffff), std::bit_cast<float>(0xff7f0000u));
}

TEST(BlocksTest, ScalesLetNoElementBeClipped) {
  EXPECT_EQ(int8_scale(254.0f), 2.0f);
  EXPECT_EQ(int8_scale(1e-45f), FLT_MIN);
  EXPECT_EQ(int8_scale(FLT_MAX), FLT_MAX / 128);
  EXPECT_EQ(int4_scale(7.0f), 0x3f80);
  EXPECT_EQ(int4_scale(7.01f), 0x3f81);  // Up, though 0x3f80 is nearer.
  EXPECT_EQ(int4_scale(1e-45f), kNibbleMinScale);
  EXPECT_EQ(int4_scale(FLT_MAX), kNibbleMaxScale);
  EXPECT_EQ(fp4_scale(1.003f), 0x3f80);  // The nearest.
  EXPECT_EQ(sign_scale(2.0f, 512), 2.0f);
  EXPECT_EQ(sign_scale(2.0f, 256), 4.0f);
  EXPECT_EQ(sign_scale(FLT_MAX, 1), FLT_MAX);
  EXPECT_EQ(sign_scale(1e-40f, 512), 0.0f);
}

TEST(BlocksTest, NoProductIsBeyondTheTopCode) {
  for (const float largest : {1e-45f, 1e-30f, 0.3f, 5.0f, 1e30f, 3e38f, FLT_MAX}) {
    EXPECT_LT(largest * int8_inverse(int8_scale(largest), largest), 127.4f) << largest;
    EXPECT_LT(largest * nibble_inverse(int4_scale(largest), largest, kInt4Top), 7.4f) << largest;
    EXPECT_LT(largest * nibble_inverse(fp4_scale(largest), largest, kFp4Top), 1.4f) << largest;
  }
}

TEST(BlocksTest, SumsHaveOneOrder) {
  float lanes[kSumLanes] = {1e8f, 1, 1, 1, 1, 1, 1, 1, -1e8f, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(add_lanes(lanes), 14.0f);  // In turn it would be 7.
}

TEST(ScalarKernelsTest, QuantisesToNearestEven) {
  const std::vector<float> in{0.5f, 1.5f, -2.5f, 126.6f, 127.0f, -127.0f, 0.49f, -0.0f};
  Bytes out(in.size() + 4);
  scalar_kernels().encode_i8(in.data(), in.size(), nullptr, out.data());
  EXPECT_EQ(out, bytes({0x00, 0x00, 0x80, 0x3f, 0, 2, -2, 127, 127, -127, 0, 0}));
}

TEST(ScalarKernelsTest, StochasticRoundingGoesUpWithTheRandomNumber) {
  const std::vector<float> in{127.0f, 0.25f, 0.25f, -0.25f, -0.25f, -127.0f, 3.0f, 3.0f};
  const std::uint16_t random[] = {0xffff, 0xbfff, 0xc000, 0x3fff, 0x4000, 0, 0, 0xffff};
  Bytes out(in.size() + 4);
  scalar_kernels().encode_i8(in.data(), in.size(), random, out.data());
  EXPECT_EQ(out, bytes({0x00, 0x00, 0x80, 0x3f, 127, 0, 1, -1, 0, -127, 3, 3}));
}

TEST(ScalarKernelsTest, FlipsWhereABitIsSet) {
  std::vector<float> x(34, 3.0f);
  x[1] = 9.0f, x[33] = -9.0f;
  const std::uint32_t signs[] = {0b10, 0b10};
  scalar_kernels().flip(x.data(), signs, x.size(), 8.0f, 0.5f, x.data());
  std::vector<float> expected(34, 1.5f);
  expected[1] = -4.0f, expected[33] = 4.0f;
  EXPECT_EQ(x, expected);
}

TEST(ScalarKernelsTest, HadamardByTheDefinition) {
  std::vector<float> x(kRotated);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) - 50.0f;
  std::vector<float> y = x;
  scalar_kernels().hadamard(y.data());
  for (const std::size_t k : {0u, 1u, 2u, 500u, 1023u}) {
    float sum = 0.0f;  // Integers: exact.
    for (std::size_t i = 0; i < x.size(); ++i) sum += std::popcount(i & k) % 2 == 0 ? x[i] : -x[i];
    EXPECT_EQ(y[k], sum) << k;
  }
}

TEST(ScalarKernelsTest, PhiloxCountsUp) {
  std::vector<std::uint32_t> words(8);
  scalar_kernels().philox({0xffffffff, 1, 2, 3}, {4, 5}, 2, words.data());
  const auto first = core::philox4x32({0xffffffff, 1, 2, 3}, {4, 5});
  const auto second = core::philox4x32({0, 1, 2, 3}, {4, 5});
  EXPECT_TRUE(std::equal(first.begin(), first.end(), words.begin()));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), words.begin() + 4));
}

TEST(ScalarKernelsTest, AddsWithoutFusing) {
  // (1 + 2^-12)^2 needs 25 bits: fused, the 2^-24 would survive.
  const float value = 1.0f + 0x1p-12f;
  float sum = -1.0f - 0x1p-11f;
  scalar_kernels().add_f32(std::as_bytes(std::span(&value, 1)).data(), 1, value, &sum);
  EXPECT_EQ(sum, 0.0f);
}

TEST(ScalarKernelsTest, MarksByDefinition) {
  std::vector<float> in(70, 0.0f);
  in[1] = -3.0f, in[2] = 2.0f, in[3] = 1.9f, in[64] = std::nanf(""),
  in[69] = std::numeric_limits<float>::infinity();
  std::uint64_t marks[2];
  scalar_kernels().mark(in.data(), nullptr, in.size(), 2.0f, marks);
  EXPECT_EQ(marks[0], 0b110u);
  EXPECT_EQ(marks[1], 0b100001u);
  const std::vector<float> view(70, 1.0f);
  scalar_kernels().mark(in.data(), view.data(), 4, 1.0f, marks);
  EXPECT_EQ(marks[0], 0b0111u);
}

}  // namespace
}  // namespace isthmus::compression
