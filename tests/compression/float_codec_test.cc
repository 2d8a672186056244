#include "compression/float_codec.h"

#include <gtest/gtest.h>

#include <cfloat>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

const FloatCodec kFp32(CodecId::kFp32, best_kernels());
const FloatCodec kFp16(CodecId::kFp16, best_kernels());
const FloatCodec kBf16(CodecId::kBf16, best_kernels());

TEST(FloatCodecTest, GoldenBytes) {
  const std::vector<float> in{1.0f, -2.5f, 0.1f};
  EXPECT_EQ(encode(kFp32, in),
            bytes({0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x20, 0xc0, 0xcd, 0xcc, 0xcc, 0x3d}));
  EXPECT_EQ(encode(kFp16, in), bytes({0x00, 0x3c, 0x00, 0xc1, 0x66, 0x2e}));
  EXPECT_EQ(encode(kBf16, in), bytes({0x80, 0x3f, 0x20, 0xc0, 0xcd, 0x3d}));
}

TEST(FloatCodecTest, Fp32IsExact) {
  const std::vector<float> in{FLT_MAX, -FLT_MIN, 1e-45f, 3.14159265f};
  std::vector<float> out(in.size());
  ASSERT_TRUE(kFp32.decode(encode(kFp32, in), out).ok());
  EXPECT_EQ(bits_of(out), bits_of(in));
}

TEST(FloatCodecTest, SaturatesInsteadOfOverflowing) {
  const std::vector<float> in{1e6f, -FLT_MAX, 65519.0f};
  std::vector<float> out(in.size());
  ASSERT_TRUE(kFp16.decode(encode(kFp16, in), out).ok());
  EXPECT_EQ(out, (std::vector<float>{65504.0f, -65504.0f, 65504.0f}));
  const float bf16_max = std::bit_cast<float>(0x7f7f0000u);
  ASSERT_TRUE(
      kBf16.decode(encode(kBf16, std::vector<float>{FLT_MAX, -FLT_MAX}), std::span(out).first(2)).ok());
  EXPECT_EQ(out[0], bf16_max);
  EXPECT_EQ(out[1], -bf16_max);
}

// 2.8e-6 is the table's for bf16. fp16 has three more mantissa bits: 64 times less.
TEST(FloatCodecTest, ErrorIsAsTheoryHasIt) {
  const std::vector<float> in = gaussian(1 << 18);
  EXPECT_NEAR(measured_nmse(kBf16, in), 2.8e-6, 0.05 * 2.8e-6);
  EXPECT_NEAR(measured_nmse(kFp16, in), 2.8e-6 / 64, 0.05 * 2.8e-6 / 64);
}

TEST(FloatCodecTest, RefusesInfAndNanInFp32) {
  std::vector<float> out(2, 5.0f);
  const Bytes hostile[] = {bytes({0, 0, 0, 0, 0x00, 0x00, 0x80, 0x7f}),   // Inf
                           bytes({0, 0, 0, 0, 0x01, 0x00, 0xc0, 0xff})};  // NaN
  for (const Bytes& record : hostile) EXPECT_EQ(kFp32.decode(record, out).code(), ErrorCode::kCorruption);
  EXPECT_EQ(out, (std::vector<float>{5.0f, 5.0f}));
}

TEST(FloatCodecTest, EveryPatternOf16BitsIsFinite) {
  std::vector<float> out(2);
  ASSERT_TRUE(kFp16.decode(bytes({0x00, 0xfc, 0x01, 0x7e}), out).ok());
  EXPECT_EQ(out, (std::vector<float>{-65504.0f, 65504.0f}));
  ASSERT_TRUE(kBf16.decode(bytes({0x80, 0x7f, 0xff, 0xff}), out).ok());
  EXPECT_EQ(out, (std::vector<float>{std::bit_cast<float>(0x7f7f0000u), std::bit_cast<float>(0xff7f0000u)}));
}

}  // namespace
}  // namespace isthmus::compression
