#include "compression/marks.h"

#include <gtest/gtest.h>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

TEST(MarksTest, VisitsWhatReachesTheThresholdInOrder) {
  for (const std::size_t n : {0u, 1u, 63u, 4096u, 10001u}) {
    const std::vector<float> in = gaussian(n);
    const std::vector<float> view = gaussian(n, 2);
    std::vector<std::size_t> expected, of_values, of_difference;
    for (std::size_t i = 0; i < n; ++i) {
      if (std::fabs(in[i] - view[i]) >= 2.0f) expected.push_back(i);
    }
    const auto into = [](std::vector<std::size_t>& found) {
      return [&found](std::size_t i) { return found.push_back(i), true; };
    };
    EXPECT_EQ(for_each_mark({in, view}, best_kernels(), 2.0f, into(of_difference)), n);
    EXPECT_EQ(of_difference, expected);
    for_each_mark({in}, best_kernels(), 1e-30f, into(of_values));
    EXPECT_EQ(of_values.size(), n);
  }
}

TEST(MarksTest, StopsWhenToldTo) {
  const std::vector<float> in(10000, 1.0f);
  std::size_t visited = 0;
  const std::size_t looked_at =
      for_each_mark({in}, best_kernels(), 0.5f, [&](std::size_t) { return ++visited < 5000; });
  EXPECT_EQ(visited, 5000u);
  EXPECT_EQ(looked_at, 5120u);
}

}  // namespace
}  // namespace isthmus::compression
