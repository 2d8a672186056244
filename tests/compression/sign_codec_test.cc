#include "compression/sign_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

const SignCodec kCodec(best_kernels());

TEST(SignCodecTest, GoldenBytes) {
  // The mean of the magnitudes is 2; the second and the fourth are negative.
  EXPECT_EQ(encode(kCodec, std::vector<float>{1.0f, -2.0f, 3.0f, -2.0f}),
            bytes({0x00, 0x00, 0x00, 0x40, 0x0a}));
}

TEST(SignCodecTest, EveryBlockHasItsMean) {
  std::vector<float> in(512, -1.0f);
  in.insert(in.end(), 100, 3.0f);
  std::vector<float> out(in.size());
  ASSERT_TRUE(kCodec.decode(encode(kCodec, in), out).ok());
  EXPECT_EQ(out[511], -1.0f);
  EXPECT_NEAR(out[512], 3.0f, 1e-6);
  EXPECT_NEAR(out[611], 3.0f, 1e-6);
}

TEST(SignCodecTest, ErrorIsAsTheTableHasIt) {
  EXPECT_NEAR(measured_nmse(kCodec, gaussian(1 << 18)), 0.363, 0.05 * 0.363);
  EXPECT_NEAR(measured_nmse(kCodec, laplace(1 << 18)), 0.499, 0.05 * 0.499);
}

TEST(SignCodecTest, TakesABitAndASixteenth) {
  EXPECT_EQ(kCodec.max_encoded_bytes(1 << 20), (1u << 20) * 17 / 128);
}

TEST(SignCodecTest, AWholeBlockOfTheLargestDoesNotOverflow) {
  const float largest = std::numeric_limits<float>::max();
  for (const std::size_t n : {1, 3, 511, 512}) {
    std::vector<float> out(n);
    ASSERT_TRUE(kCodec.decode(encode(kCodec, std::vector<float>(n, largest)), out).ok());
    EXPECT_NEAR(out[0] / largest, 1.0f, 1e-5) << n;
  }
}

TEST(SignCodecTest, RefusesScalesThatNoEncoderWrites) {
  const float bad[] = {std::numeric_limits<float>::infinity(), std::nanf(""), -1.0f, 1e-40f};
  for (const float scale : bad) {
    Bytes record = encode(kCodec, gaussian(600));
    std::memcpy(record.data() + 68, &scale, 4);
    std::vector<float> out(600, 5.0f);
    EXPECT_EQ(kCodec.accumulate(record, 1.0f, out).code(), ErrorCode::kCorruption) << scale;
    EXPECT_EQ(out, std::vector<float>(600, 5.0f));
  }
}

}  // namespace
}  // namespace isthmus::compression
