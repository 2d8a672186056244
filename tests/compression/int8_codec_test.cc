#include "compression/int8_codec.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cstring>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

const Int8Codec kCodec(best_kernels());

Bytes record_of(float scale, std::int8_t code) {
  Bytes record(5);
  std::memcpy(record.data(), &scale, 4);
  record[4] = static_cast<std::byte>(code);
  return record;
}

TEST(Int8CodecTest, GoldenBytes) {
  // Scale 254 / 127 = 2: codes 127, -1, and 0.5 and 1.5 rounded to even.
  EXPECT_EQ(encode(kCodec, std::vector<float>{254.0f, -2.0f, 1.0f, 3.0f}),
            bytes({0x00, 0x00, 0x00, 0x40, 127, 0xff, 0, 2}));
}

TEST(Int8CodecTest, EveryBlockHasItsScale) {
  std::vector<float> in(257, 127.0f);
  in[256] = -127.0f * 4;
  const Bytes record = encode(kCodec, in);
  ASSERT_EQ(record.size(), 257u + 8);
  EXPECT_EQ(Bytes(record.begin() + 260, record.end()), bytes({0x00, 0x00, 0x80, 0x40, 0x81}));
  std::vector<float> out(257);
  ASSERT_TRUE(kCodec.decode(record, out).ok());
  EXPECT_EQ(out, in);
}

TEST(Int8CodecTest, ErrorIsAsTheTableHasIt) {
  EXPECT_NEAR(measured_nmse(kCodec, gaussian(1 << 18)), 4.8e-5, 0.05 * 4.8e-5);
  EXPECT_NEAR(measured_nmse(kCodec, laplace(1 << 18)), 1.0e-4, 0.05 * 1.0e-4);
  const Int8Codec stochastic(best_kernels(), core::Rounding::kStochastic);
  EXPECT_NEAR(measured_nmse(stochastic, gaussian(1 << 18)), 9.7e-5, 0.05 * 9.7e-5);
  EXPECT_NEAR(measured_nmse(stochastic, laplace(1 << 18)), 2.0e-4, 0.05 * 2.0e-4);
}

TEST(Int8CodecTest, StochasticRoundingIsRightInTheMeanAndNeverTheSame) {
  const Int8Codec stochastic(best_kernels(), core::Rounding::kStochastic);
  std::vector<float> in(256, 0.3f);
  in[0] = 127.0f;  // The scale is 1: each code is 0 or 1.
  CodecState state;
  std::vector<float> sum(256, 0.0f);
  Bytes last;
  for (int call = 0; call < 400; ++call) {
    const Bytes record = encode(stochastic, in, state);
    EXPECT_NE(record, last);
    last = record;
    ASSERT_TRUE(stochastic.accumulate(record, 1.0f / 400, sum).ok());
  }
  double mean = 0.0;
  for (std::size_t i = 1; i < 256; ++i) {
    EXPECT_NEAR(sum[i], 0.3, 0.12) << i;  // Five standard deviations.
    mean += sum[i] / 255;
  }
  EXPECT_NEAR(mean, 0.3, 0.008);
  EXPECT_NEAR(sum[0], 127.0, 1e-3);
  // The same key and number give the same record; another key another one.
  CodecState again{.records = 399}, other{.key = 1, .records = 399};
  EXPECT_EQ(encode(stochastic, in, again), last);
  EXPECT_NE(encode(stochastic, in, other), last);
}

TEST(Int8CodecTest, NoElementIsWrongByMoreThanHalfAScale) {
  const std::vector<float> in = gaussian(256, 3);
  std::vector<float> out(256);
  ASSERT_TRUE(kCodec.decode(encode(kCodec, in), out).ok());
  float largest = 0.0f;
  for (const float value : in) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < 256; ++i) EXPECT_LE(std::fabs(in[i] - out[i]), largest / 254 * 1.00001f);
}

TEST(Int8CodecTest, TinyAndHugeBlocksStayFiniteAndCarryOn) {
  for (const float size : {1e-45f, 1e-40f, 1e-37f, FLT_MAX}) {
    const std::vector<float> in(256, size);
    std::vector<float> out(256);
    ASSERT_TRUE(kCodec.decode(encode(kCodec, in), out).ok());
    EXPECT_TRUE(all_finite(out));
    EXPECT_LE(std::fabs(in[0] - out[0]), std::max(FLT_MIN / 2, size / 127)) << size;
  }
}

TEST(Int8CodecTest, RefusesScalesThatNoEncoderWrites) {
  std::vector<float> out(1, 5.0f);
  const float bad[] = {std::numeric_limits<float>::infinity(), std::nanf(""), -1.0f, FLT_MAX, 1e-40f};
  for (const float scale : bad) {
    EXPECT_EQ(kCodec.decode(record_of(scale, 1), out).code(), ErrorCode::kCorruption) << scale;
    EXPECT_EQ(kCodec.accumulate(record_of(scale, 1), 1.0f, out).code(), ErrorCode::kCorruption) << scale;
  }
  EXPECT_EQ(out[0], 5.0f);
  // The most that a decoder lets through is finite.
  ASSERT_TRUE(kCodec.decode(record_of(FLT_MAX / 128, -128), out).ok());
  EXPECT_EQ(out[0], -FLT_MAX);
}

TEST(Int8CodecTest, ChecksTheLastBlockToo) {
  Bytes record = encode(kCodec, gaussian(513));
  const float bad = std::nanf("");
  std::memcpy(record.data() + 520, &bad, 4);
  std::vector<float> out(513, 5.0f);
  EXPECT_EQ(kCodec.accumulate(record, 1.0f, out).code(), ErrorCode::kCorruption);
  EXPECT_EQ(out, std::vector<float>(513, 5.0f));
}

}  // namespace
}  // namespace isthmus::compression
