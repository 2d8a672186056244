#include "apps/bench_commit.h"

#include <gtest/gtest.h>

namespace isthmus::apps {
namespace {

TEST(BenchCommitTest, CommitsAndTouches) {
  CommitBench bench;
  for (int i = 0; i < 2; ++i) {
    EXPECT_GT(bench.commit(), 0.0);
    EXPECT_GT(bench.touch(), 0.0);
  }
  // Adam's first steps of a constant gradient are of the size of the rate.
  EXPECT_NEAR(bench.parameter(), -2e-3, 1e-5);
}

}  // namespace
}  // namespace isthmus::apps
