#include "apps/bench_exchange.h"

#include <gtest/gtest.h>

namespace isthmus::apps {
namespace {

TEST(BenchExchangeTest, BothDoEveryShape) {
  const ExchangeShape shapes[] = {
      {.tensors = 3, .elements = 20'000, .in_flight = 2},
      {.tensors = 20, .elements = 100, .together = 7},
      {.tensors = 5, .elements = 1000, .in_flight = 1, .pull = false},
      {.tensors = 5, .elements = 1000, .push = false},
  };
  for (const ExchangeShape& shape : shapes) {
    auto ours = IsthmusExchange::start(shape);
    ASSERT_TRUE(ours.ok()) << ours.status().to_string();
    auto plain = PlainExchange::start(shape);
    ASSERT_TRUE(plain.ok()) << plain.status().to_string();
    for (int i = 0; i < 3; ++i) {
      const auto mine = (*ours)->run();
      ASSERT_TRUE(mine.ok()) << mine.status().to_string();
      EXPECT_GT(*mine, 0.0);
      const auto theirs = (*plain)->run();
      ASSERT_TRUE(theirs.ok()) << theirs.status().to_string();
      EXPECT_GT(*theirs, 0.0);
    }
    // The same steps of the same gradient: SGD with rate 1e-3 of 1e-3, from 1e-3 and from 0.
    if (!shape.push || !shape.pull) continue;
    for (const float value : (*ours)->parameters()) ASSERT_NEAR(value, 1e-3 - 3e-6, 1e-8);
    for (const float value : (*plain)->parameters()) ASSERT_NEAR(value, -3e-6, 1e-8);
  }
}

}  // namespace
}  // namespace isthmus::apps
