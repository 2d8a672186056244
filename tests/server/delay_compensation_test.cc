#include "server/delay_compensation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace isthmus::server {
namespace {

// Card DCASGD: w_bak = 1, w = .8, g = .5.
float compensated(const core::CompensationConfig& config, std::vector<float>& mean_squares, float now = .8f,
                  float then = 1.0f, float g = .5f) {
  std::vector<float> gradient{g};
  compensate(config, std::vector<float>{now}, std::vector<float>{then}, mean_squares, gradient);
  return gradient[0];
}

TEST(DelayCompensationTest, Constant) {
  std::vector<float> none;
  EXPECT_NEAR(compensated({.lambda = 0.04f}, none), .498, 1e-7);
  EXPECT_EQ(compensated({.lambda = 0.04f}, none, 1.0f), .5f);
}

// m = 0: lambda 2 / sqrt(.25 + 1e-7) = 3.9999992.
TEST(DelayCompensationTest, Adaptive) {
  std::vector<float> mean_squares{0.0f};
  EXPECT_NEAR(compensated({.lambda = 2.0f, .adaptive = true, .decay = 0.0f}, mean_squares), .30000004, 1e-7);
  EXPECT_EQ(mean_squares, std::vector<float>{0.25f});
}

// From a mean of zero, m = .95 gives lambda 17.9 and -.394: it points back. Here the first square is the
// mean.
TEST(DelayCompensationTest, AColdMeanDoesNotTurnTheGradientAround) {
  std::vector<float> mean_squares{0.0f};
  const core::CompensationConfig config{.lambda = 2.0f, .adaptive = true, .decay = 0.95f};
  EXPECT_NEAR(compensated(config, mean_squares), .30000004, 1e-7);
  EXPECT_NEAR(compensated(config, mean_squares, .8f, 1.0f, 1.0f), 1 - .2 * 2 / std::sqrt(.2875), 1e-5);
  EXPECT_NEAR(mean_squares[0], .95 * .25 + .05, 1e-7);
}

TEST(DelayCompensationTest, TheCorrectionIsNeverLongerThanTheGradient) {
  std::vector<float> none;
  EXPECT_EQ(compensated({.lambda = 100.0f}, none, -50.0f), 0.0f);
  EXPECT_EQ(compensated({.lambda = 100.0f}, none, 50.0f), 1.0f);
  EXPECT_EQ(compensated({.lambda = 100.0f}, none, 50.0f, 1.0f, -.5f), 0.0f);
}

}  // namespace
}  // namespace isthmus::server
