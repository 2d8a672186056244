#include "compression/fp4_codec.h"

#include <gtest/gtest.h>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

const Fp4Codec kCodec(best_kernels());

TEST(Fp4CodecTest, GoldenBytes) {
  // Scale 4. Codes 7, 6 and negative, 5, 1, 0.
  EXPECT_EQ(encode(kCodec, std::vector<float>{4.0f, -2.0f, 1.0f, 0.05f, 0.0f}),
            bytes({0x80, 0x40, 0x17, 0x0e, 0x05}));
}

TEST(Fp4CodecTest, TakesTheNearestOfZeroAndSevenPowersOfTwo) {
  std::vector<float> in{1.0f};
  for (int i = 1; i < 64; ++i) in.push_back(std::ldexp(1.0f, -10 * i / 63) * (i % 2 == 0 ? 0.99f : -0.98f));
  std::vector<float> out(64);
  ASSERT_TRUE(kCodec.decode(encode(kCodec, in), out).ok());
  for (std::size_t i = 0; i < in.size(); ++i) {
    double nearest = 0.0;
    for (int k = 0; k < 7; ++k) {
      for (const double sign : {1.0, -1.0}) {
        const double level = sign * std::ldexp(1.0, -k);
        if (std::fabs(in[i] - level) < std::fabs(in[i] - nearest)) nearest = level;
      }
    }
    EXPECT_EQ(out[i], nearest) << in[i];
  }
}

TEST(Fp4CodecTest, ErrorIsAsTheTableHasIt) {
  EXPECT_NEAR(measured_nmse(kCodec, gaussian(1 << 18)), 3.5e-2, 0.05 * 3.5e-2);
  EXPECT_NEAR(measured_nmse(kCodec, laplace(1 << 18)), 3.2e-2, 0.05 * 3.2e-2);
}

TEST(Fp4CodecTest, TakesFourBitsAndAQuarter) {
  EXPECT_EQ(kCodec.max_encoded_bytes(1 << 20), (1u << 20) * 17 / 32);
}

TEST(Fp4CodecTest, RefusesScalesThatNoEncoderWrites) {
  Bytes record = encode(kCodec, gaussian(130));
  record[35] = std::byte{0x7f};
  std::vector<float> out(130, 5.0f);
  EXPECT_EQ(kCodec.accumulate(record, 1.0f, out).code(), ErrorCode::kCorruption);
  EXPECT_EQ(out, std::vector<float>(130, 5.0f));
}

}  // namespace
}  // namespace isthmus::compression
