#include "core/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <future>

namespace isthmus::core {
namespace {

TEST(StopSignalsTest, TakesEachSignalOnce) {
  const auto signals = StopSignals::create();
  ASSERT_TRUE(signals.ok()) << signals.status().to_string();
  EXPECT_EQ((*signals)->take(), std::nullopt);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    ::kill(::getpid(), number);  // Would end the test if it were not blocked.
    EXPECT_EQ((*signals)->wait_for(std::chrono::seconds(60)), number);
    EXPECT_EQ((*signals)->take(), std::nullopt);
  }
}

TEST(StopSignalsTest, GivesUpWhenTheTimeIsUp) {
  const auto signals = StopSignals::create();
  ASSERT_TRUE(signals.ok());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ((*signals)->wait_for(std::chrono::milliseconds(20)), std::nullopt);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
}

TEST(StopSignalsTest, WhatTheParentIgnoresStaysIgnored) {
  ::signal(SIGINT, SIG_IGN);
  {
    const auto signals = StopSignals::create();
    ASSERT_TRUE(signals.ok());
    ::kill(::getpid(), SIGINT);
    EXPECT_EQ((*signals)->take(), std::nullopt);
  }
  ::signal(SIGINT, SIG_DFL);
}

TEST(StopSignalsTest, UnblocksThemAtTheEnd) {
  { ASSERT_TRUE(StopSignals::create().ok()); }
  sigset_t blocked;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 0);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

TEST(StopSignalsTest, OneThatNobodyTookEndsNothing) {
  const auto signals = StopSignals::create();
  ASSERT_TRUE(signals.ok());
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);  // Would end the test once they are unblocked.
}

TEST(SignalThreadTest, ASignalBecomesACallEvenIfItCameBefore) {
  const auto signals = StopSignals::create();
  ASSERT_TRUE(signals.ok());
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  std::promise<void> called;
  const SignalThread thread(**signals, [&] { called.set_value(); });
  EXPECT_EQ(called.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(SignalThreadTest, EndsWithoutASignal) {
  const auto signals = StopSignals::create();
  ASSERT_TRUE(signals.ok());
  const SignalThread thread(**signals, [] { FAIL(); });
}

}  // namespace
}  // namespace isthmus::core
