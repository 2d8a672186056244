#include "worker/step_timer.h"

#include <gtest/gtest.h>

namespace isthmus::worker {
namespace {

using std::chrono::milliseconds;
using Part = StepTimer::Part;

core::TimePoint at(int ms) { return core::TimePoint(milliseconds(ms)); }

TEST(StepTimerTest, WhatIsNotSpentInTheClientIsComputing) {
  StepTimer timer(at(100));
  timer.add(Part::kEncode, milliseconds(5));
  timer.add(Part::kExchange, milliseconds(20));
  timer.add(Part::kExchange, milliseconds(10));
  timer.add(Part::kBarrier, milliseconds(15));
  const proto::StepTimes first = timer.take(at(200));
  EXPECT_EQ(first.compute_us(), 50'000u);
  EXPECT_EQ(first.encode_us(), 5'000u);
  EXPECT_EQ(first.exchange_us(), 30'000u);
  EXPECT_EQ(first.barrier_us(), 15'000u);
  const proto::StepTimes second = timer.take(at(207));
  EXPECT_EQ(second.compute_us(), 7'000u);
  EXPECT_EQ(second.exchange_us(), 0u);
}

TEST(StepTimerTest, ThreadsThatWaitTogetherLeaveNoTimeToComputeIn) {
  StepTimer timer(at(0));
  for (int thread = 0; thread < 3; ++thread) timer.add(Part::kExchange, milliseconds(10));
  const proto::StepTimes times = timer.take(at(10));
  EXPECT_EQ(times.compute_us(), 0u);
  EXPECT_EQ(times.exchange_us(), 30'000u);
}

}  // namespace
}  // namespace isthmus::worker
