#include "compression/power.h"

#include <gtest/gtest.h>

#include <cmath>

namespace isthmus::compression {
namespace {

// Against the C library, whose last bits may be others.
TEST(PowerTest, AgreesWithTheLibraryToFourteenDigits) {
  for (double base = 1e-9; base < 5e9; base *= 1.37) {
    EXPECT_NEAR(log2_of(base), std::log2(base), 1e-14 * std::max(1.0, std::fabs(std::log2(base)))) << base;
    for (const double exponent : {0.025, 0.1, 0.3333, 1.0, 1.9, 2.0, -0.7}) {
      const double expected = std::pow(base, exponent);
      EXPECT_NEAR(power_of(base, exponent), expected, 1e-13 * expected) << base << " " << exponent;
    }
  }
}

TEST(PowerTest, IsExactForPowersOfTwo) {
  for (int i = -60; i <= 60; ++i) {
    EXPECT_EQ(log2_of(std::ldexp(1.0, i)), i);
    EXPECT_EQ(exp2_of(i), std::ldexp(1.0, i));
  }
  static_assert(power_of(2.0, 3.0) == 8.0);
}

}  // namespace
}  // namespace isthmus::compression
