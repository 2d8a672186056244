#include "compression/magnitude_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

MagnitudeHistogram of(std::span<const float> values) {
  MagnitudeHistogram histogram;
  histogram.add(values);
  return histogram;
}

TEST(MagnitudeHistogramTest, ABinIsAQuarterOfAPowerOfTwo) {
  const std::vector<float> values{1.0f, -1.24f, 1.25f, 1.5f, -1.99f, 2.0f, 0.0f, -0.0f};
  const MagnitudeHistogram histogram = of(values);
  EXPECT_EQ(histogram.total(), 8u);
  const std::size_t one = 127 * 4;  // The exponent's bias, and four bins for each.
  EXPECT_EQ(MagnitudeHistogram::lower_bound(one), 1.0);
  EXPECT_EQ(MagnitudeHistogram::lower_bound(one + 1), 1.25);
  EXPECT_EQ(MagnitudeHistogram::lower_bound(one + 4), 2.0);
  EXPECT_EQ(histogram.bins()[one], 2u);
  EXPECT_EQ(histogram.bins()[one + 1], 1u);
  EXPECT_EQ(histogram.bins()[one + 2], 1u);
  EXPECT_EQ(histogram.bins()[one + 3], 1u);
  EXPECT_EQ(histogram.bins()[one + 4], 1u);
  EXPECT_EQ(histogram.bins()[0], 2u);
}

TEST(MagnitudeHistogramTest, CountsAndSquaresAreThoseOfTheNumbers) {
  const std::vector<float> values = gaussian(200'000, 3, 0.01f);
  const MagnitudeHistogram histogram = of(values);
  for (const double threshold : {0.0, 1e-4, 0.01, 0.02, 0.0257, 0.03, 1.0}) {
    const auto exact = std::ranges::count_if(values, [&](float v) { return std::fabs(v) >= threshold; });
    EXPECT_NEAR(histogram.at_least(threshold), static_cast<double>(exact), 0.05 * static_cast<double>(exact))
        << threshold;
  }
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  EXPECT_NEAR(histogram.energy(), squares, 0.03 * squares);
}

TEST(MagnitudeHistogramTest, MergingIsCountingTogether) {
  const std::vector<float> values = gaussian(10'000);
  const auto all = std::span<const float>(values);
  MagnitudeHistogram ab = of(all.first(3000));
  const MagnitudeHistogram b = of(all.subspan(3000));
  MagnitudeHistogram ba = b;
  ba.merge(ab);
  ab.merge(b);
  EXPECT_EQ(ab, of(values));
  EXPECT_EQ(ba, ab);
}

TEST(MagnitudeHistogramTest, ASampleStandsForAll) {
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{5}, std::size_t{1000}, std::size_t{16'385}, std::size_t{1'000'003}}) {
    const std::vector<float> values = gaussian(n, 8);
    MagnitudeHistogram sample;
    sample.add_sample(values, 16'384);
    EXPECT_EQ(sample.total(), n);
    if (n <= 16'384) {
      EXPECT_EQ(sample, of(values));
    } else if (n > 1'000'000) {
      // 1 % of 16 Ki: 164 elements, give or take a thirteenth; five times that is allowed.
      EXPECT_NEAR(sample.at_least(2.5758), 0.01 * static_cast<double>(n),
                  0.4 * 0.01 * static_cast<double>(n));
      EXPECT_NEAR(sample.at_least(0.6745), 0.5 * static_cast<double>(n), 0.03 * static_cast<double>(n));
    }
  }
}

TEST(MagnitudeHistogramTest, ASampleSeesEveryColumn) {
  // A matrix of 1024 columns, one of which is large: a regular stride sees all of it or nothing.
  std::vector<float> values(std::size_t{1} << 22);
  for (std::size_t i = 100; i < values.size(); i += 1024) values[i] = 1.0f;
  MagnitudeHistogram sample;
  sample.add_sample(values, 65'536);
  EXPECT_NEAR(sample.at_least(0.5), 4096, 4096 * 0.6);
}

TEST(MagnitudeHistogramTest, TheEndsOfTheRangeHaveTheirBins) {
  const std::vector<float> values{std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min(),
                                  std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN()};
  const MagnitudeHistogram histogram = of(values);
  EXPECT_EQ(histogram.bins()[0], 1u);
  EXPECT_EQ(histogram.bins()[254 * 4 + 3], 1u);
  EXPECT_EQ(histogram.at_least(0x1p127), 3.0);
}

}  // namespace
}  // namespace isthmus::compression
