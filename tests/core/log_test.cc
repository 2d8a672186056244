#include "core/log.h"

#include <gtest/gtest.h>

namespace isthmus::core {
namespace {

using std::chrono::milliseconds;

TEST(LineLimiterTest, OneLineOfAKindASecond) {
  LineLimiter limiter;
  const TimePoint start{};
  EXPECT_EQ(limiter.pass("refused a message of 17 bytes", start), "refused a message of 17 bytes");
  EXPECT_EQ(limiter.pass("refused a message of 18 bytes", start + milliseconds(10)), std::nullopt);
  EXPECT_EQ(limiter.pass("refused a message of 19 bytes", start + milliseconds(999)), std::nullopt);
  EXPECT_EQ(limiter.pass("worker 1 left", start + milliseconds(999)), "worker 1 left");
  EXPECT_EQ(limiter.pass("refused a message of 20 bytes", start + milliseconds(1000)),
            "refused a message of 20 bytes (and 2 more like it)");
  EXPECT_EQ(limiter.pass("refused a message of 21 bytes", start + milliseconds(2000)),
            "refused a message of 21 bytes");
}

TEST(LineLimiterTest, ManyKindsTakeBoundedMemoryAndRecover) {
  LineLimiter limiter;
  const TimePoint start{};
  int passed = 0;
  for (int i = 0; i < 10000; ++i)
    passed += limiter.pass(std::string(static_cast<std::size_t>(i), 'x'), start).has_value();
  EXPECT_EQ(passed, 256);
  EXPECT_TRUE(limiter.pass("something else", start + milliseconds(1000)).has_value());
}

TEST(LogTest, WritesALineWithTimeAndName) {
  testing::internal::CaptureStderr();
  stderr_log("frankfurt/server 0")("worker {} joined");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.ends_with(" frankfurt/server 0: worker {} joined\n")) << text;
}

}  // namespace
}  // namespace isthmus::core
