#include "compression/int4_codec.h"

#include <gtest/gtest.h>

#include "compression/kernels/blocks.h"
#include "core/random.h"
#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using core::Rounding;

const Int4Codec kCodec(best_kernels());
const Int4Codec kRotatedCodec(best_kernels(), true);

TEST(Int4CodecTest, GoldenBytes) {
  // Scale 1. Codes 7, -3, 0.5 and 1.5 rounded to even, -7; the first three share their bytes with the last
  // two.
  EXPECT_EQ(encode(kCodec, std::vector<float>{7.0f, -3.0f, 0.5f, 1.5f, -7.0f}),
            bytes({0x80, 0x3f, 0x27, 0x9d, 0x00}));
}

TEST(Int4CodecTest, TakesFourBitsAndAQuarter) {
  EXPECT_EQ(kCodec.max_encoded_bytes(1 << 20), (1u << 20) * 17 / 32);
  EXPECT_EQ(kCodec.max_encoded_bytes(65), 34u + 3);
  EXPECT_EQ(kRotatedCodec.max_encoded_bytes(65), 16u + 34 + 3);
}

TEST(Int4CodecTest, ErrorIsAsTheTableHasIt) {
  const auto near = [](const Int4Codec& codec, const std::vector<float>& in, double expected) {
    EXPECT_NEAR(measured_nmse(codec, in), expected, 0.05 * expected);
  };
  const std::vector<float> gauss = gaussian(1 << 18), heavy = laplace(1 << 18);
  near(kCodec, gauss, 1.16e-2);
  near(kCodec, heavy, 2.0e-2);
  near(kRotatedCodec, gauss, 1.16e-2);
  near(kRotatedCodec, heavy, 1.16e-2);
  const Int4Codec stochastic(best_kernels(), false, Rounding::kStochastic);
  near(stochastic, gauss, 2.3e-2);
  near(stochastic, heavy, 4.0e-2);
}

TEST(Int4CodecTest, ARotationSpreadsWhatStandsOut) {
  std::vector<float> in = gaussian(2048, 4, 0.01f);
  for (std::size_t i = 0; i < in.size(); i += 64) in[i] = 1.0f;
  const auto without_peaks = [&](const Codec& codec) {
    std::vector<float> out(in.size());
    EXPECT_TRUE(codec.decode(encode(codec, in), out).ok());
    double error = 0.0, power = 0.0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (i % 64 == 0) continue;
      error += double{in[i] - out[i]} * (in[i] - out[i]);
      power += double{in[i]} * in[i];
    }
    return error / power;
  };
  EXPECT_GT(without_peaks(kCodec), 0.99);  // Every other element is lost.
  EXPECT_LT(measured_nmse(kRotatedCodec, in), 0.013);
}

// H D x / 32, and back, in double precision.
TEST(Int4CodecTest, RotatesByTheDefinition) {
  const std::vector<float> in = gaussian(1024, 6);
  CodecState state{.key = 0x1122334455667788, .records = 7};
  const Bytes record = encode(kRotatedCodec, in, state);
  std::vector<double> rotated(1024, 0.0);
  for (std::uint32_t i = 0; i < 1024; ++i) {
    const auto words = core::philox4x32({i / 128, 7, 0, 2}, {0x55667788, 0x11223344});
    const double value = (words[i / 32 % 4] >> (i % 32) & 1u) != 0 ? -in[i] : in[i];
    for (std::uint32_t k = 0; k < 1024; ++k) {
      rotated[k] += std::popcount(i & k) % 2 == 0 ? value / 32 : -value / 32;
    }
  }
  const std::vector<float> expected(rotated.begin(), rotated.end());
  const Bytes plain(record.begin() + 16, record.end());
  std::vector<float> decoded(1024);
  ASSERT_TRUE(kCodec.decode(plain, decoded).ok());
  EXPECT_LT(nmse(expected, decoded), 0.013);
  // Mixed back, the error is the same: lengths are kept.
  std::vector<float> out(1024);
  ASSERT_TRUE(kRotatedCodec.decode(record, out).ok());
  EXPECT_NEAR(nmse(in, out), nmse(expected, decoded), 1e-6);
}

TEST(Int4CodecTest, WhatIsLeftAfterTheLastThousandIsNotRotated) {
  const std::vector<float> in = gaussian(1024 + 100);
  const Bytes record = encode(kRotatedCodec, in);
  const Bytes tail = encode(kCodec, std::span(in).subspan(1024));
  EXPECT_EQ(Bytes(record.end() - static_cast<std::ptrdiff_t>(tail.size()), record.end()), tail);
}

TEST(Int4CodecTest, NoTwoRecordsAreRotatedAlike) {
  const std::vector<float> in = gaussian(1024);
  CodecState state, other{.key = 1};
  const auto body = [&](CodecState& s) {
    const Bytes record = encode(kRotatedCodec, in, s);
    return Bytes(record.begin() + 16, record.end());
  };
  const Bytes first = body(state);
  EXPECT_NE(body(state), first);
  EXPECT_NE(body(other), first);
}

TEST(Int4CodecTest, RefusesScalesThatNoEncoderWrites) {
  for (const int high : {0x7f, 0xff, 0xbf, 0x7c, 0x02}) {  // Inf, NaN, negative, too large, too small.
    Bytes record = encode(kCodec, gaussian(130));
    record[35] = static_cast<std::byte>(high);
    std::vector<float> out(130, 5.0f);
    EXPECT_EQ(kCodec.accumulate(record, 1.0f, out).code(), ErrorCode::kCorruption) << high;
    EXPECT_EQ(out, std::vector<float>(130, 5.0f));
  }
}

// The most that a decoder lets through, in the rotation's worst case.
TEST(Int4CodecTest, TheLargestRecordIsFinite) {
  Bytes record(kRotatedCodec.max_encoded_bytes(1024), std::byte{0x88});
  for (std::size_t block = 0; block < 16; ++block) {
    record[16 + block * 34] = std::byte{kNibbleMaxScale & 0xff};
    record[17 + block * 34] = std::byte{kNibbleMaxScale >> 8};
  }
  std::vector<float> out(1024);
  ASSERT_TRUE(kRotatedCodec.decode(record, out).ok());
  EXPECT_TRUE(all_finite(out));
}

}  // namespace
}  // namespace isthmus::compression
