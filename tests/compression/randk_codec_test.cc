#include "compression/randk_codec.h"

#include <gtest/gtest.h>

#include <set>

#include "core/random.h"
#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using core::KeptValues;

RandkCodec randk(double keep, KeptValues values = KeptValues::kFp32) {
  return RandkCodec(keep, values, best_kernels());
}

// The places of a record, seen from outside: where ones arrive.
std::vector<std::size_t> places_of(const Codec& codec, std::size_t n, CodecState& state) {
  std::vector<float> out(n);
  EXPECT_TRUE(codec.decode(encode(codec, std::vector<float>(n, 1.0f), state), out).ok());
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < n; ++i) {
    if (out[i] != 0.0f) places.push_back(i);
  }
  return places;
}

TEST(RandkCodecTest, PlacesFollowFromKeyAndRecordAsTheGrammarSays) {
  const std::size_t n = 10007, k = 1001;
  CodecState state{.key = 0xaabbccdd00112233, .records = 0x500000006};
  const std::vector<std::size_t> places = places_of(randk(0.1), n, state);
  ASSERT_EQ(places.size(), k);
  for (std::uint32_t j = 0; j < k; ++j) {
    const auto words = core::philox4x32({j / 4, 6, 5, 3}, {0x00112233, 0xaabbccdd});
    const std::uint64_t begin = j * n / k, end = (j + 1) * n / k;
    EXPECT_EQ(places[j], begin + ((end - begin) * words[j % 4] >> 32)) << j;
  }
}

TEST(RandkCodecTest, GoldenBytes) {
  CodecState state{.key = 9, .records = 2};
  const Bytes record =
      encode(randk(0.5, KeptValues::kFp16), std::vector<float>{1.0f, 1.0f, -2.0f, -2.0f}, state);
  EXPECT_EQ(record, bytes({9, 0, 0, 0, 0, 0,    0,    0,    2,   0, 0, 0, 0, 0, 0, 0,  // key, record
                           2, 2, 0, 0, 0, 0x00, 0x3c, 0x00, 0xc0}));                   // fp16, count, 1, -2
}

TEST(RandkCodecTest, NoIndicesTravel) {
  EXPECT_EQ(randk(0.01, KeptValues::kFp16).max_encoded_bytes(100000), 21u + 2 * 1000);
  EXPECT_EQ(randk(0.01, KeptValues::kInt8).max_encoded_bytes(100000), 21u + 1000 + 4 * 4);
}

TEST(RandkCodecTest, EveryElementIsKeptAsOftenAsAnyOther) {
  const std::size_t n = 1000;
  std::vector<int> kept(n);
  CodecState state{.key = 77};
  for (int call = 0; call < 4000; ++call) {
    for (const std::size_t place : places_of(randk(0.05), n, state)) ++kept[place];
  }
  // 200 each; the standard deviation is 14.
  for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(kept[i], 200, 70) << i;
}

TEST(RandkCodecTest, NoTwoRecordsAndNoTwoKeysShareTheirPlaces) {
  std::set<std::vector<std::size_t>> seen;
  for (std::uint64_t key = 0; key < 5; ++key) {
    CodecState state{.key = key};
    for (int call = 0; call < 20; ++call) {
      EXPECT_TRUE(seen.insert(places_of(randk(0.01), 20000, state)).second);
    }
  }
}

TEST(RandkCodecTest, KeepingAllKeepsAll) {
  CodecState state;
  EXPECT_EQ(places_of(randk(1.0), 777, state).size(), 777u);
  EXPECT_EQ(places_of(randk(1e-6), 777, state).size(), 1u);
}

TEST(RandkCodecTest, RefusesHostileRecordsAndLeavesTheSumAlone) {
  const Bytes good = encode(randk(0.5, KeptValues::kInt8), gaussian(8));
  std::vector<float> sum(8, 5.0f);
  const auto refused = [&](std::size_t place, int value) {
    Bytes record = good;
    record[place] = static_cast<std::byte>(value);
    EXPECT_EQ(randk(0.5).accumulate(record, 1.0f, sum).code(), ErrorCode::kCorruption) << place;
    EXPECT_EQ(randk(0.5).decode(record, sum).code(), ErrorCode::kCorruption) << place;
  };
  refused(16, 3);     // A kind of values that there is not.
  refused(16, 1);     // Values of another size.
  refused(17, 9);     // More values than elements.
  refused(17, 3);     // Fewer than sent.
  refused(20, 0xff);  // 4 G.
  refused(24, 0xff);  // A negative scale.
  EXPECT_EQ(sum, std::vector<float>(8, 5.0f));
}

}  // namespace
}  // namespace isthmus::compression
