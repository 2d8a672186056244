#include "compression/threshold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

// The definition, by sorting.
Cut sorted_cut(std::vector<float> in, std::size_t k) {
  for (float& value : in) value = std::fabs(value);
  std::sort(in.begin(), in.end(), std::greater<>());
  const float magnitude = in[k - 1];
  const auto above = std::count_if(in.begin(), in.end(), [&](float v) { return v > magnitude; });
  return {magnitude, k - static_cast<std::size_t>(above)};
}

TEST(ThresholdTest, TheExactCutIsThatOfSorting) {
  std::vector<float> coarse = gaussian(5000, 2);
  for (float& value : coarse) value = std::round(value * 4);  // Many equals.
  for (const std::vector<float>& in : {gaussian(3001), coarse, awkward(2100), std::vector<float>(3000, -0.5f),
                                       std::vector<float>(3000, 0.0f), std::vector<float>{7.0f}}) {
    for (const std::size_t k : {std::size_t{1}, in.size() / 100 + 1, in.size() / 2 + 1, in.size()}) {
      const std::optional<Cut> cut = exact_cut({in}, k, best_kernels());
      ASSERT_TRUE(cut);
      const Cut expected = sorted_cut(in, k);
      EXPECT_EQ(cut->magnitude, expected.magnitude);
      EXPECT_EQ(cut->ties, expected.ties);
    }
  }
}

TEST(ThresholdTest, TheExactCutOfADifferenceSeesWhatIsNotFinite) {
  std::vector<float> a = gaussian(5000), b = gaussian(5000, 2), difference(5000);
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  EXPECT_EQ(exact_cut({a, b}, 77, best_kernels())->magnitude, sorted_cut(difference, 77).magnitude);
  b[4999] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(exact_cut({a, b}, 77, best_kernels()));
}

TEST(ThresholdTest, ASampleIsNearTheTruth) {
  const std::size_t n = 1 << 21;
  const std::vector<float> in = gaussian(n);
  for (std::uint64_t where = 0; where < 5; ++where) {
    const double at_1_percent = static_cast<double>(passing(in, sampled_threshold({in}, n / 100, where)));
    EXPECT_NEAR(at_1_percent / n, 0.01, 0.0016) << where;  // Four standard deviations.
    const double at_10_percent = static_cast<double>(passing(in, sampled_threshold({in}, n / 10, where)));
    EXPECT_NEAR(at_10_percent / n, 0.1, 0.005) << where;
  }
}

TEST(ThresholdTest, TwoSamplesLookAtOtherPlaces) {
  const std::vector<float> in = gaussian(1 << 20);
  EXPECT_NE(sampled_threshold({in}, 10000, 0), sampled_threshold({in}, 10000, 1));
}

// A matrix with one large column: a sample in step with its rows would see all or nothing of it.
TEST(ThresholdTest, ASampleDoesNotAliasWithColumns) {
  for (const std::size_t columns : {1024, 1000, 512, 16}) {
    std::vector<float> in = gaussian(1 << 21, 3, 0.001f);
    for (std::size_t i = columns / 3; i < in.size(); i += columns) in[i] = 1.0f;
    const std::size_t large = in.size() / columns;
    EXPECT_EQ(sampled_threshold({in}, large / 2, 0), 1.0f) << columns;
    EXPECT_LT(sampled_threshold({in}, 2 * large, 0), 0.01f) << columns;
  }
}

}  // namespace
}  // namespace isthmus::compression
