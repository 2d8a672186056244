#include "compression/topk_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cstring>
#include <limits>

#include "compression/kernels/float16.h"
#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using core::KeptValues;

TopkCodec topk(double keep, KeptValues values = KeptValues::kFp16) {
  return TopkCodec(keep, values, best_kernels());
}

std::size_t count_of(const Bytes& record) {
  std::uint32_t count = 0;
  std::memcpy(&count, record.data() + 1, 4);
  return count;
}

// What arrives other than zero, of `n` elements.
std::vector<std::uint32_t> indices_of(const Bytes& record, std::size_t n) {
  std::vector<float> out(n);
  EXPECT_TRUE(topk(1.0).decode(record, out).ok());
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (out[i] != 0.0f) result.push_back(i);
  }
  EXPECT_EQ(result.size(), count_of(record));
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

const std::vector<float> kFive{0.5f, -3.0f, 0.25f, 1.0f, -0.75f};

TEST(TopkCodecTest, GoldenBytes) {
  EXPECT_EQ(encode(topk(0.4), kFive), bytes({2, 2, 0, 0, 0,        // fp16, count
                                             1, 0, 0, 0, 1, 0, 0,  // first index, bytes of bits, parameter
                                             0b10,                 // a gap of one
                                             0x00, 0xc2, 0x00, 0x3c}));  // -3, 1
  EXPECT_EQ(encode(topk(0.4, KeptValues::kInt8), std::vector<float>{0.5f, -127.0f, 0.25f, 64.4f, -0.75f}),
            bytes({4, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0b10, 0x00, 0x00, 0x80, 0x3f, 0x81, 64}));
}

TEST(TopkCodecTest, WhatItKeepsIsTheLargestInAnyCase) {
  for (const std::uint32_t seed : {1u, 2u, 3u}) {
    const std::vector<float> in = gaussian(20000, seed);
    CodecState state;
    for (int call = 0; call < 4; ++call) {
      const std::vector<std::uint32_t> kept = indices_of(encode(topk(0.01), in, state), in.size());
      EXPECT_NEAR(static_cast<double>(kept.size()), 200.0, 20.0);
      EXPECT_EQ(kept, largest(in, kept.size()));
    }
  }
}

TEST(TopkCodecTest, WithoutAThresholdASmallSliceIsCutExactly) {
  const std::vector<float> in = gaussian(20000);
  EXPECT_EQ(indices_of(encode(topk(0.01), in), in.size()), largest(in, 200));
  EXPECT_EQ(indices_of(encode(topk(0.001), in), in.size()), largest(in, 20));
}

TEST(TopkCodecTest, ErrorIsAsTheTableHasIt) {
  const std::size_t n = 1 << 18;
  for (const KeptValues values : {KeptValues::kFp32, KeptValues::kFp16, KeptValues::kInt8}) {
    // What is sent, which is sharper than the error: 1 - 0.915, and so on.
    EXPECT_NEAR(1.0 - measured_nmse(topk(0.01, values), gaussian(n)), 0.085, 0.1 * 0.085);
    EXPECT_NEAR(measured_nmse(topk(0.01, values), laplace(n)), 0.838, 0.02);
    EXPECT_NEAR(measured_nmse(topk(0.1, values), gaussian(n)), 0.561, 0.05 * 0.561);
    EXPECT_NEAR(measured_nmse(topk(0.1, values), laplace(n)), 0.405, 0.05 * 0.405);
  }
}

TEST(TopkCodecTest, AKeptElementCostsAtMost) {
  const std::vector<float> in = gaussian(1 << 20);
  const auto bytes_each = [&](KeptValues values) {
    const Bytes record = encode(topk(0.01, values), in);
    EXPECT_LE(record.size(), topk(0.01, values).max_encoded_bytes(in.size()));
    return static_cast<double>(record.size()) / static_cast<double>(count_of(record));
  };
  EXPECT_LE(bytes_each(KeptValues::kFp16), 3.1);
  EXPECT_LE(bytes_each(KeptValues::kInt8), 2.15);
}

// However indices lie, a record fits the bound.
TEST(TopkCodecTest, ClusteredAndSpreadIndicesFit) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random() % 3000;
    std::vector<float> in(n, 0.0f);
    for (std::size_t i = 0; i < n; ++i) {
      if ((i / (1 + random() % 50)) % 7 == 0 || random() % 97 == 0) in[i] = 1.0f;
    }
    for (const double keep : {0.002, 0.1, 0.5, 1.0}) encode(topk(keep), in);  // It checks the size itself.
    const Bytes record = encode(topk(0.3), in);
    EXPECT_LE(record.size(), topk(0.3).max_encoded_bytes(n));
  }
}

TEST(TopkCodecTest, CountStaysNearTheTarget) {
  for (const double keep : {0.1, 0.01, 0.001}) {
    const std::size_t n = 1 << 18;
    const double target = std::round(keep * static_cast<double>(n));
    CodecState state;
    for (std::uint32_t call = 1; call <= 8; ++call) {
      // Each call's values are smaller than the last one's, as in training.
      const auto record = encode(topk(keep), gaussian(n, call, 1.0f / static_cast<float>(call)), state);
      EXPECT_NEAR(static_cast<double>(count_of(record)), target, 0.1 * target + 1) << keep << " " << call;
    }
  }
}

// What the correction is for: while values change slowly, one pass is enough.
TEST(TopkCodecTest, ThresholdsSettle) {
  for (const bool heavy : {false, true}) {
    CodecState state;
    for (std::uint32_t call = 1; call <= 6; ++call) {
      const std::vector<float> in = heavy ? laplace(1 << 18, call) : gaussian(1 << 18, call);
      if (call > 2) {
        const auto passing =
            std::count_if(in.begin(), in.end(), [&](float v) { return std::fabs(v) >= state.threshold; });
        EXPECT_NEAR(static_cast<double>(passing), 2621.0, 262.0) << call;
      }
      encode(topk(0.01), in, state);
    }
  }
}

TEST(TopkCodecTest, AnyStateIsValid) {
  const std::vector<float> in = gaussian(100000);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float threshold : {0.0f, -1.0f, std::nanf(""), inf, 1e30f, 1e-30f}) {
    CodecState state{.threshold = threshold};
    EXPECT_NEAR(static_cast<double>(count_of(encode(topk(0.01), in, state))), 1000.0, 100.0);
    EXPECT_NEAR(state.threshold, 2.576f, 0.1f);
  }
}

TEST(TopkCodecTest, NoPlaceIsPreferred) {
  const std::size_t n = 1 << 17;
  double quarter[4] = {};
  double all = 0.0;
  CodecState state;
  for (std::uint32_t call = 0; call < 20; ++call) {
    // Twice as large every other time, so that thresholds never fit.
    const std::vector<float> in = gaussian(n, 100 + call, call % 2 == 0 ? 1.0f : 2.0f);
    for (const auto index : indices_of(encode(topk(0.01), in, state), n)) ++quarter[index / (n / 4)], ++all;
  }
  // Some 6,550 in each; the standard deviation is 70.
  for (const double count : quarter) EXPECT_NEAR(count, all / 4, 350.0);
}

TEST(TopkCodecTest, ValuesInOneCornerAreFound) {
  // The sample sees almost none of them.
  std::vector<float> in(1 << 18, 0.0f);
  const std::vector<float> values = gaussian(2000);
  std::copy(values.begin(), values.end(), in.end() - 2000);
  CodecState state;
  for (int call = 0; call < 3; ++call) {
    const auto indices = indices_of(encode(topk(0.005), in, state), in.size());
    EXPECT_NEAR(static_cast<double>(indices.size()), 1311.0, 131.0);
    EXPECT_GE(indices.front(), in.size() - 2000);
  }
}

TEST(TopkCodecTest, TiesAreBoundedAndEveryIndexGetsItsTurn) {
  const std::vector<float> in(10000, -0.5f);
  std::vector<float> sent(10000, 0.0f);
  CodecState state;
  Bytes out(topk(0.01).max_encoded_bytes(10000));
  for (std::uint32_t call = 0; call < 100; ++call) {
    const auto size = topk(0.01).encode_delta(in, sent, sent, state, out);
    ASSERT_TRUE(size.ok());
    const auto indices = indices_of(Bytes(out.begin(), out.begin() + static_cast<long>(*size)), 10000);
    ASSERT_EQ(indices.size(), 100u);
    EXPECT_EQ(indices.front(), call * 100);
    EXPECT_EQ(indices.back(), call * 100 + 99);
  }
  EXPECT_EQ(sent, in);
  EXPECT_EQ(count_of(encode(topk(0.01), std::vector<float>(10000, 0.0f), state)), 0u);
}

TEST(TopkCodecTest, WhatWouldBeZeroIsNotSent) {
  std::vector<float> in(1000, 1e-9f);
  in[7] = 6e-8f;
  EXPECT_EQ(indices_of(encode(topk(0.5), in), 1000), std::vector<std::uint32_t>{7});
  EXPECT_EQ(count_of(encode(topk(0.5, KeptValues::kFp32), in)), 500u);
}

// A pass that has already moved a view and turns out wrong leaves no trace: tries, undoing, and the exact
// cut.
TEST(TopkCodecTest, AWrongThresholdDoesNotShowInTheView) {
  const std::size_t n = 200000;
  const std::vector<float> parameters = gaussian(n, 1);
  const std::vector<float> before = gaussian(n, 2);
  for (const float threshold : {1e-6f, 3.3f, 100.0f}) {
    std::vector<float> view = before;
    Bytes out(topk(0.01).max_encoded_bytes(n));
    CodecState state{.threshold = threshold};
    const auto size = topk(0.01).encode_delta(parameters, view, view, state, out);
    ASSERT_TRUE(size.ok());
    std::vector<float> expected = before;
    ASSERT_TRUE(topk(0.01).accumulate(std::span(out).first(*size), 1.0f, expected).ok());
    EXPECT_EQ(bits_of(view), bits_of(expected));
  }
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
  EXPECT_EQ(encode(topk(0.01), rest), bytes({2, 1, 0, 0, 0, 50, 0, 0, 0, 0, 0, 0, 0xff, 0x7b}));
}

TEST(TopkCodecTest, RefusesHostileRecordsAndLeavesTheSumAlone) {
  const Bytes hostile[] = {
      bytes({}),
      bytes({2, 1, 0, 0}),
      bytes({3, 0, 0, 0, 0}),                                                  // bf16 values there are not
      bytes({2, 0, 0, 0, 0, 0}),                                               // a byte too many
      bytes({2, 0xff, 0xff, 0xff, 0xff}),                                      // 4 G values
      bytes({2, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0x3c}),                    // index = elements
      bytes({2, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0x3c}),        // index 2^32 - 1
      bytes({2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3c}),                       // half a value
      bytes({2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x3c}),                 // bits for no gap
      bytes({2, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0b1000, 0, 0x3c, 0, 0x3c}),   // the second is elements
      bytes({2, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x3c, 0, 0x3c}),        // a gap without end
      bytes({2, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0b11, 0, 0x3c, 0, 0x3c}),     // more bits than gaps
      bytes({2, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 32, 1, 0, 0x3c, 0, 0x3c}),       // parameter 32
      bytes({2, 2, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 1, 0, 0x3c, 0, 0x3c}),  // bits past the end
      bytes({1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x7f}),           // fp32 Inf
      bytes({4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0xbf, 1}),        // a negative scale
  };
  std::vector<float> sum(4, 5.0f);
  for (const Bytes& record : hostile) {
    EXPECT_EQ(topk(0.5).accumulate(record, 1.0f, sum).code(), ErrorCode::kCorruption);
    EXPECT_EQ(topk(0.5).decode(record, sum).code(), ErrorCode::kCorruption);
  }
  EXPECT_EQ(sum, std::vector<float>(4, 5.0f));
}

TEST(TopkCodecTest, ABlockMustBeginAfterTheLastOne) {
  std::vector<float> in(600, 0.0f);
  for (std::size_t i = 0; i < 300; ++i) in[2 * i] = 1.0f;
  Bytes record = encode(topk(0.5), in);
  const std::size_t second = 5 + 7 + 64 + 512;
  ASSERT_EQ(record[second], std::byte{0});  // Index 512.
  record[second + 1] = std::byte{1};        // 256 has been.
  std::vector<float> out(600);
  EXPECT_EQ(topk(0.5).decode(record, out).code(), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace isthmus::compression
