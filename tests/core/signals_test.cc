#include "core/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <future>

namespace isthmus::core {
namespace {

TEST(SignalsTest, ASignalBecomesACall) {
  for (const int signal : {SIGTERM, SIGINT}) {
    std::promise<int> got;
    TerminationSignals signals([&](int number) { got.set_value(number); });
    ASSERT_EQ(kill(getpid(), signal), 0);
    auto future = got.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_EQ(future.get(), signal);
  }
}

TEST(SignalsTest, EndsWithoutASignal) {
  TerminationSignals signals([](int) { FAIL(); });
}

}  // namespace
}  // namespace isthmus::core
