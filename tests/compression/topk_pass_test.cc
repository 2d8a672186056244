#include "compression/topk_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

// The k-th largest magnitude, by sorting.
float largest(std::vector<float> in, std::size_t k) {
  for (float& value : in) value = std::fabs(value);
  std::sort(in.begin(), in.end(), std::greater<>());
  return in[k - 1];
}

TEST(TopkPassTest, CorrectsTowardsTheWantedCount) {
  const std::size_t n = 1 << 20;
  for (const std::vector<float>& in : {gaussian(n), laplace(n)}) {
    for (const double keep : {0.1, 0.01, 0.001}) {
      const float right = largest(in, static_cast<std::size_t>(keep * n));
      for (const float wrong : {0.95f, 1.05f}) {
        const float threshold = right * wrong;
        double log2_sum = 0.0;
        for (const float value : in) {
          if (std::fabs(value) >= threshold) log2_sum += std::log2(std::fabs(value) / threshold);
        }
        const auto count = static_cast<double>(passing(in, threshold));
        const float corrected =
            corrected_threshold(threshold, tail_fall(count, log2_sum), count / (keep * n));
        const double ratio = static_cast<double>(passing(in, corrected)) / (keep * n);
        EXPECT_NEAR(ratio, 1.0, 0.12) << keep << " " << wrong;
      }
    }
  }
}

TEST(TopkPassTest, AnyTailGivesAFiniteCorrection) {
  for (const double log2_sum : {0.0, 1e-30, 1.0, 1e9}) {
    const double fall = tail_fall(10.0, log2_sum);
    EXPECT_GE(fall, 0.5);
    EXPECT_LE(fall, 40.0);
    EXPECT_TRUE(std::isfinite(corrected_threshold(1.0f, fall, 1e6)));
  }
}

constexpr TopkTarget kTarget{.elements = 10'000, .wanted = 100, .most = 110, .least = 1e-7f};

TopkPass pass_of(std::uint64_t count, std::uint64_t looked_at = 10'000) {
  return {.threshold = 1.0f, .count = count, .log_sum = count << 22, .looked_at = looked_at};
}

TEST(TopkPassTest, FromNineTenthsToElevenTenthsFit) {
  EXPECT_FALSE(fits(pass_of(89), kTarget));
  EXPECT_TRUE(fits(pass_of(90), kTarget));
  EXPECT_TRUE(fits(pass_of(110), kTarget));
  TopkPass over = pass_of(110);
  over.too_many = true;
  EXPECT_FALSE(fits(over, kTarget));
  TopkPass infinite = pass_of(100);
  infinite.finite = false;
  EXPECT_FALSE(fits(infinite, kTarget));
  EXPECT_EQ(most_kept(100, 10'000), 110u);
  EXPECT_EQ(most_kept(100, 105), 105u);
  EXPECT_EQ(most_kept(9, 10'000), 9u);
}

TEST(TopkPassTest, FewAreEnoughWhereTheRestIsNotWorthSending) {
  TopkPass few = pass_of(3);
  EXPECT_FALSE(fits(few, kTarget));
  few.threshold = kTarget.least;
  EXPECT_TRUE(fits(few, kTarget));
}

TEST(TopkPassTest, APassThatSawLittleTellsLittle) {
  EXPECT_FALSE(is_telling(pass_of(12), kTarget));
  EXPECT_TRUE(is_telling(pass_of(13), kTarget));
  EXPECT_FALSE(is_telling(pass_of(110, 4'999), kTarget));
  EXPECT_TRUE(is_telling(pass_of(110, 5'000), kTarget));
}

// log2(magnitude / threshold) is 1/2 in the mean: a fall of 2 / ln 2.
TEST(TopkPassTest, TheNextThresholdFollowsTheTail) {
  const double fall = 2 / std::log(2.0);
  EXPECT_EQ(next_threshold(pass_of(0), kTarget), 0.0f);
  EXPECT_FLOAT_EQ(next_threshold(pass_of(100), kTarget), 1.0f);
  EXPECT_FLOAT_EQ(next_threshold(pass_of(50), kTarget), static_cast<float>(std::pow(0.5, 1 / fall)));
  // It stopped half-way: there would have been twice as many.
  EXPECT_FLOAT_EQ(next_threshold(pass_of(110, 5'000), kTarget), static_cast<float>(std::pow(2.2, 1 / fall)));
  TopkPass tiny = pass_of(1);
  tiny.threshold = 1e-30f;
  EXPECT_EQ(next_threshold(tiny, kTarget), kTarget.least);
}

}  // namespace
}  // namespace isthmus::compression
