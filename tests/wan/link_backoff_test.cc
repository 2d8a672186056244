#include "wan/link_backoff.h"

#include <gtest/gtest.h>

namespace isthmus::wan {
namespace {

using std::chrono::milliseconds;

Backoff backoff(std::uint64_t seed) {
  return {milliseconds(50), milliseconds(2000), core::Random(seed, {1, 2, 3})};
}

TEST(LinkBackoffTest, DoublesUpToItsLimitWithJitter) {
  Backoff waits = backoff(1);
  for (int limit : {50, 100, 200, 400, 800, 1600, 2000, 2000, 2000}) {
    const core::Duration wait = waits.next();
    EXPECT_GE(wait, milliseconds(limit) / 2);
    EXPECT_LT(wait, milliseconds(limit));
  }
  waits.reset();
  EXPECT_LT(waits.next(), milliseconds(50));
}

TEST(LinkBackoffTest, PeersDoNotWaitInStep) {
  EXPECT_NE(backoff(1).next(), backoff(2).next());
  EXPECT_LT(backoff(3).jittered(std::chrono::seconds(5)), std::chrono::seconds(5));
  EXPECT_GE(backoff(3).jittered(std::chrono::seconds(5)), milliseconds(2500));
}

}  // namespace
}  // namespace isthmus::wan
