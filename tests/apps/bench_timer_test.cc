#include "apps/bench_timer.h"

#include <gtest/gtest.h>

#include <chrono>

namespace isthmus::apps {
namespace {

TEST(BenchTimerTest, TheMedianIsTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({9, 1, 2, 4}), 3);
}

TEST(BenchTimerTest, RatiosAreOfPairs) {
  // The machine slows down to a third: each pass takes twice what the read before it took, all along.
  const double reads[] = {1, 1, 3};
  const double passes[] = {2, 2, 6};
  const Pace pace = pace_of(8'000'000'000, reads, passes);
  EXPECT_EQ(pace.ratio, 0.5);
  EXPECT_EQ(pace.gb_per_s, 4);
}

TEST(BenchTimerTest, RunsOnceForPracticeAndThenAsOftenAsTold) {
  const std::vector<float> input(1000);
  BenchTimer timer(input, 5, std::chrono::hours(1));
  int passes = 0, prepared = 0;
  const Pace pace = timer.measure([&] { ++passes; },
                                  [&] {
                                    EXPECT_EQ(prepared, passes);
                                    ++prepared;
                                  });
  EXPECT_EQ(passes, 6);
  EXPECT_EQ(prepared, 6);
  EXPECT_GT(pace.gb_per_s, 0);
  EXPECT_GT(pace.ratio, 0);
  EXPECT_GT(timer.read_gb_per_s(), 0);
}

TEST(BenchTimerTest, OutOfTimeItStillMeasuresOnce) {
  const std::vector<float> input(1000);
  BenchTimer timer(input, 1000, core::Duration{0});
  int passes = 0;
  (void)timer.measure([&] { ++passes; });
  EXPECT_EQ(passes, 2);
}

}  // namespace
}  // namespace isthmus::apps
