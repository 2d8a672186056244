#include "compression/topk_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cstring>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

TopkCodec topk(double keep) { return TopkCodec(keep, best_kernels()); }

std::vector<std::uint32_t> indices_of(const Bytes& record) {
  std::uint32_t count = 0;
  std::memcpy(&count, record.data(), 4);
  std::vector<std::uint32_t> result(count);
  for (std::uint32_t i = 0; i < count; ++i) std::memcpy(&result[i], record.data() + 4 + 4 * i, 4);
  return result;
}

// The definition, by sorting.
std::vector<std::uint32_t> largest(const std::vector<float>& in, std::size_t k) {
  std::vector<std::uint32_t> order(in.size());
  for (std::uint32_t i = 0; i < in.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return std::fabs(in[a]) > std::fabs(in[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

TEST(TopkCodecTest, GoldenBytes) {
  EXPECT_EQ(encode(topk(0.4), std::vector<float>{0.5f, -3.0f, 0.25f, 1.0f, -0.75f}),
            bytes({2, 0, 0, 0,                 // count
                   1, 0, 0, 0, 3, 0, 0, 0,     // indices
                   0x00, 0xc2, 0x00, 0x3c}));  // -3, 1
}

TEST(TopkCodecTest, KeepsExactlyTheLargestWhenTheThresholdLetsEnoughPass) {
  for (const std::uint32_t seed : {1u, 2u, 3u}) {
    const std::vector<float> in = gaussian(20000, seed);
    EXPECT_EQ(indices_of(encode(topk(0.01), in)), largest(in, 200));
  }
}

TEST(TopkCodecTest, AsksForTheRoundedShareButAtLeastOne) {
  const auto kept = [](double keep, std::size_t n) {
    return indices_of(encode(topk(keep), gaussian(n))).size();
  };
  EXPECT_EQ(kept(0.01, 149), 1u);
  EXPECT_EQ(kept(0.01, 151), 2u);
  EXPECT_EQ(kept(0.01, 3), 1u);
  EXPECT_EQ(kept(1.0, 100), 100u);
  EXPECT_EQ(kept(0.01, 0), 0u);
}

TEST(TopkCodecTest, ErrorIsAsTheTableHasIt) {
  EXPECT_NEAR(measured_nmse(topk(0.01), gaussian(1 << 18)), 0.915, 0.05 * 0.915);
  // The part sent is sharper: 1 - 0.915.
  EXPECT_NEAR(1.0 - measured_nmse(topk(0.01), gaussian(1 << 18)), 0.085, 0.05 * 0.085);
}

TEST(TopkCodecTest, CountStaysNearTheTarget) {
  for (const double keep : {0.1, 0.01, 0.001}) {
    const std::size_t n = 1 << 18;
    const double target = std::round(keep * static_cast<double>(n));
    CodecState state;
    for (std::uint32_t call = 1; call <= 8; ++call) {
      // Each call's values are smaller than the last one's, as in training.
      const auto record = encode(topk(keep), gaussian(n, call, 1.0f / static_cast<float>(call)), state);
      if (call < 3) continue;
      EXPECT_NEAR(static_cast<double>(indices_of(record).size()), target, 0.1 * target)
          << keep << " " << call;
    }
  }
}

TEST(TopkCodecTest, AnyStateIsValid) {
  const std::vector<float> in = gaussian(100000);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float threshold : {0.0f, -1.0f, std::nanf(""), inf, 1e30f, 1e-30f}) {
    CodecState state{threshold};
    EXPECT_NEAR(static_cast<double>(indices_of(encode(topk(0.01), in, state)).size()), 1000.0, 100.0);
    EXPECT_GT(state.threshold, 1.0f);
    EXPECT_LT(state.threshold, 4.0f);
  }
}

TEST(TopkCodecTest, ALaterCallNeedsNoSample) {
  // The next threshold lets an eighth more than k pass: exact while the values keep their distribution.
  const std::vector<float> in = gaussian(20000);
  CodecState state;
  encode(topk(0.01), in, state);
  std::size_t passing = 0;
  for (const float value : in) passing += std::fabs(value) >= state.threshold;
  EXPECT_EQ(passing, 226u);
}

TEST(TopkCodecTest, NoPlaceIsPreferred) {
  const std::size_t n = 1 << 17;
  std::size_t quarter[4] = {};
  CodecState state;
  for (std::uint32_t call = 0; call < 20; ++call) {
    for (const auto index : indices_of(encode(topk(0.01), gaussian(n, 100 + call), state))) {
      ++quarter[index / (n / 4)];
    }
  }
  // Some 6,550 in each; the standard deviation is 70.
  for (const std::size_t count : quarter) EXPECT_NEAR(static_cast<double>(count), 0.01 * n / 4 * 20, 350.0);
}

TEST(TopkCodecTest, ValuesInOneCornerAreFound) {
  // The sample sees almost none of them.
  std::vector<float> in(1 << 18, 0.0f);
  const std::vector<float> values = gaussian(2000);
  std::copy(values.begin(), values.end(), in.end() - 2000);
  CodecState state;
  for (int call = 0; call < 3; ++call) {
    const auto indices = indices_of(encode(topk(0.005), in, state));
    EXPECT_GE(indices.size(), 1180u);
    EXPECT_LE(indices.size(), 1311u);
    EXPECT_GE(indices.front(), in.size() - 2000);
  }
}

TEST(TopkCodecTest, TiesAreBoundedAndEveryIndexGetsItsTurn) {
  const std::vector<float> in(10000, -0.5f);
  std::vector<float> rest = in;
  CodecState state;
  for (std::uint32_t call = 0; call < 100; ++call) {
    const Bytes record = encode(topk(0.01), rest, state);
    const auto indices = indices_of(record);
    ASSERT_EQ(indices.size(), 100u);
    EXPECT_EQ(indices.front(), call * 100);
    EXPECT_EQ(indices.back(), call * 100 + 99);
    ASSERT_TRUE(topk(0.01).accumulate(record, -1.0f, rest).ok());
  }
  EXPECT_EQ(rest, std::vector<float>(10000, 0.0f));
  EXPECT_TRUE(indices_of(encode(topk(0.01), rest, state)).empty());
}

TEST(TopkCodecTest, WhatFp16CannotSayIsNotSent) {
  std::vector<float> in(1000, 1e-9f);
  in[7] = 6e-8f;
  EXPECT_EQ(indices_of(encode(topk(0.5), in)), std::vector<std::uint32_t>{7});
}

TEST(TopkCodecTest, HugeValuesAreClampedSoThatTheRestFollows) {
  std::vector<float> rest(100, 0.0f);
  rest[50] = -200000.0f;
  for (int call = 0; call < 5; ++call) {
    ASSERT_TRUE(topk(0.01).accumulate(encode(topk(0.01), rest), -1.0f, rest).ok());
    EXPECT_TRUE(all_finite(rest));
  }
  EXPECT_EQ(rest[50], 0.0f);
  rest[50] = FLT_MAX;
  EXPECT_EQ(encode(topk(0.01), rest), bytes({1, 0, 0, 0, 50, 0, 0, 0, 0xff, 0x7b}));
}

TEST(TopkCodecTest, RefusesHostileRecordsAndLeavesTheSumAlone) {
  const Bytes hostile[] = {
      bytes({}),
      bytes({1, 0, 0}),
      bytes({0xff, 0xff, 0xff, 0xff}),                                // 4 G values
      bytes({1, 0, 0, 0, 4, 0, 0, 0, 0, 0x3c}),                       // index = elements
      bytes({1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x3c}),           // index 2^32 - 1
      bytes({2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0x3c, 0, 0x3c}),  // twice
      bytes({2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x3c, 0, 0x3c}),  // descending
      bytes({2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x3c, 0, 0x7c}),  // Inf in the last place
      bytes({1, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xfe}),                    // NaN
      bytes({5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3,
             0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),  // more values than elements
  };
  std::vector<float> sum(4, 5.0f);
  for (const Bytes& record : hostile) {
    EXPECT_EQ(topk(0.5).accumulate(record, 1.0f, sum).code(), ErrorCode::kCorruption);
    EXPECT_EQ(topk(0.5).decode(record, sum).code(), ErrorCode::kCorruption);
  }
  EXPECT_EQ(sum, std::vector<float>(4, 5.0f));
}

}  // namespace
}  // namespace isthmus::compression
