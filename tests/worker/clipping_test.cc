#include "worker/clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace isthmus::worker {
namespace {

TEST(ClippingTest, TheSquareSumIsExactForIntegers) {
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<float> values(n);
    double expected = 0;
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = static_cast<float>(i) - 5.0f;
      expected += double{values[i]} * values[i];
    }
    EXPECT_EQ(square_sum(values), expected);
  }
}

// torch.nn.utils.clip_grad_norm_ divides by the norm + 1e-6; this does not.
TEST(ClippingTest, ALongGradientGetsTheLengthAsked) {
  const std::vector<float> a{30.0f, 40.0f}, b{0.0f, 120.0f};
  const std::vector<Gradient> gradients{{{0}, a}, {{1}, b}};
  const auto length = [&](const std::vector<float>& scales) {
    return std::sqrt(square_sum(a) * scales[0] * scales[0] + square_sum(b) * scales[1] * scales[1]);
  };
  EXPECT_NEAR(length(clip_scales(gradients, {.norm = 2.0f})), 2.0, 1e-6);
  EXPECT_TRUE(clip_scales(gradients, {.norm = 130.0f}).empty());
  EXPECT_TRUE(clip_scales(gradients, {}).empty());
  // First each tensor to 25, then both of them from 25 sqrt 2 to 5.
  const std::vector<float> both = clip_scales(gradients, {.norm = 5.0f, .tensor_norm = 25.0f});
  EXPECT_NEAR(length(both), 5.0, 1e-6);
  EXPECT_NEAR(both[0] * 50, both[1] * 120, 1e-5);
}

TEST(ClippingTest, ExtremesStayInRange) {
  const float most = std::numeric_limits<float>::max();
  const std::vector<float> huge(100, most), zeros(3, 0.0f), bad{1.0f, NAN}, infinite{INFINITY};
  for (const float scale : clip_scales(std::vector<Gradient>{{{0}, huge}, {{1}, zeros}}, {.norm = 1e-6f})) {
    EXPECT_GT(scale, 0.0f);
    EXPECT_LE(scale, 1.0f);
  }
  EXPECT_TRUE(clip_scales(std::vector<Gradient>{{{0}, zeros}}, {.norm = 1.0f}).empty());
  EXPECT_TRUE(clip_scales(std::vector<Gradient>{{{0}, huge}, {{1}, bad}}, {.norm = 1.0f}).empty());
  EXPECT_TRUE(clip_scales(std::vector<Gradient>{{{0}, infinite}}, {.tensor_norm = 1.0f}).empty());
}

}  // namespace
}  // namespace isthmus::worker
