#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace isthmus::core {
namespace {

// Known answers published with the authors' Random123 library (kat_vectors, "philox4x32 10").
TEST(RandomTest, PhiloxGivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, AStreamBeginsWithItsOwnBlockAndGoesOnWithTheNext) {
  Random random(0x299f31d0a4093822, {7, 8, 9});
  for (std::uint32_t block = 0; block < 3; ++block)
    for (std::uint32_t word : philox4x32({block, 7, 8, 9}, {0xa4093822, 0x299f31d0}))
      EXPECT_EQ(random.next_u32(), word);
}

TEST(RandomTest, StreamsAndSeedsDiffer) {
  const std::uint64_t reference = Random(1, {1, 2, 3}).next_u64();
  EXPECT_EQ(Random(1, {1, 2, 3}).next_u64(), reference);
  EXPECT_NE(Random(2, {1, 2, 3}).next_u64(), reference);
  EXPECT_NE(Random(1, {2, 2, 3}).next_u64(), reference);
  EXPECT_NE(Random(1, {1, 3, 3}).next_u64(), reference);
  EXPECT_NE(Random(1, {1, 2, 4}).next_u64(), reference);
  EXPECT_NE(Random(1ull << 32 | 1, {1, 2, 3}).next_u64(), reference);
}

TEST(RandomTest, MomentsAreThoseOfTheDistributions) {
  constexpr int kDraws = 100000;
  Random random(42, {0, 0, 0});
  double uniform = 0, normal = 0, square = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u;
    const double z = random.normal();
    normal += z;
    square += z * z;
  }
  // Six standard errors of each mean.
  EXPECT_NEAR(uniform / kDraws, 0.5, 6 * 0.2887 / 316);
  EXPECT_NEAR(normal / kDraws, 0.0, 6 * 1.0 / 316);
  EXPECT_NEAR(square / kDraws, 1.0, 6 * 1.4142 / 316);
}

TEST(RandomTest, BelowGivesEachValueEquallyOften) {
  constexpr int kDraws = 60000;
  Random random(3, {0, 0, 0});
  std::array<int, 6> count{};
  for (int i = 0; i < kDraws; ++i) ++count.at(random.below(6));
  for (int n : count) EXPECT_NEAR(n, kDraws / 6, 6 * 91);  // Six standard deviations.
  // 3 * 2^30 does not divide 2^32: without rejection the values below 2^30 came twice as often.
  int low = 0;
  for (int i = 0; i < kDraws; ++i) low += random.below(3u << 30) < 1u << 30 ? 1 : 0;
  EXPECT_NEAR(low, kDraws / 3, 6 * 116);
}

TEST(RandomTest, ShuffleKeepsTheValuesAndReachesEveryOrder) {
  std::vector<int> values(1000);
  std::iota(values.begin(), values.end(), 0);
  std::vector<int> shuffled = values;
  Random(1, {0, 0, 0}).shuffle(std::span(shuffled));
  EXPECT_NE(shuffled, values);
  EXPECT_TRUE(std::is_permutation(values.begin(), values.end(), shuffled.begin()));

  std::array<int, 6> count{};  // By the order of three values.
  for (std::uint32_t i = 0; i < 6000; ++i) {
    std::array<int, 3> three{0, 1, 2};
    Random(1, {0, 0, i}).shuffle(std::span<int>(three));
    ++count.at(static_cast<std::size_t>(three[0] * 2 + (three[1] > three[2] ? 1 : 0)));
  }
  for (int n : count) EXPECT_NEAR(n, 1000, 6 * 29);
}

}  // namespace
}  // namespace isthmus::core
