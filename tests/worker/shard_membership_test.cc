#include "worker/shard_membership.h"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus::worker {
namespace {

using namespace std::chrono_literals;

constexpr core::TimePoint kStart{std::chrono::hours(1)};

TEST(MembershipTest, GoesFromHelloToWelcomeAndBack) {
  Membership shard;
  EXPECT_FALSE(shard.wants_heartbeat(true));
  shard.say_hello(4, kStart, 500ms);
  EXPECT_TRUE(shard.joining());
  EXPECT_FALSE(shard.is_since_hello(3));
  EXPECT_TRUE(shard.is_since_hello(4));
  EXPECT_FALSE(shard.hello_due(kStart + 499ms));
  EXPECT_TRUE(shard.hello_due(kStart + 500ms));
  shard.say_hello(5, kStart + 500ms, 500ms);
  EXPECT_TRUE(shard.is_since_hello(4));  // Still the same joining.
  EXPECT_EQ(shard.wake_at(true), kStart + 1000ms);

  shard.welcome(5, kStart + 600ms, 100ms);
  EXPECT_TRUE(shard.joined());
  EXPECT_FALSE(shard.forgotten(5));
  EXPECT_TRUE(shard.forgotten(6));
  shard.say_hello(7, kStart + 800ms, 500ms);
  EXPECT_FALSE(shard.forgotten(8));
  EXPECT_FALSE(shard.is_since_hello(6));
}

TEST(MembershipTest, AWorkerBeatsAlwaysAndAnObserverWhileItWaits) {
  Membership shard;
  shard.say_hello(1, kStart, 500ms);
  shard.welcome(1, kStart, 100ms);
  EXPECT_FALSE(shard.take_heartbeat(true, kStart + 99ms));
  EXPECT_FALSE(shard.take_heartbeat(false, kStart + 100ms));
  EXPECT_TRUE(shard.take_heartbeat(true, kStart + 100ms));
  EXPECT_FALSE(shard.take_heartbeat(true, kStart + 199ms));
  EXPECT_EQ(shard.wake_at(true), kStart + 200ms);
  EXPECT_EQ(shard.wake_at(false), core::TimePoint::max());
  shard.requests = 1;
  EXPECT_TRUE(shard.take_heartbeat(false, kStart + 200ms));
  shard.leave();
  EXPECT_TRUE(shard.wants_heartbeat(true));
  shard.requests = 0;
  EXPECT_FALSE(shard.wants_heartbeat(true));
}

TEST(MembershipTest, TheIntervalKeepsTheLeaseAndNoticesSilence) {
  EXPECT_EQ(heartbeat_interval(900, 30s), 300ms);
  EXPECT_EQ(heartbeat_interval(900, 1s), 250ms);
  EXPECT_EQ(heartbeat_interval(9000, 30s), 500ms);  // A server that has restarted waits for it.
  EXPECT_EQ(heartbeat_interval(0, 30s), 500ms);
  EXPECT_EQ(heartbeat_interval(1, 30s), 1ms);
  EXPECT_EQ(heartbeat_interval(std::numeric_limits<std::uint64_t>::max(), 1s), 250ms);
}

TEST(MembershipTest, AWelcomeMustBeOfTheShardThatWasMeant) {
  proto::Welcome meta;
  meta.set_shard(1);
  meta.set_shards(2);
  const auto code = [&](std::uint32_t shard, std::size_t shards, bool knows_layout) {
    return check_welcome(proto::make_message(proto::Kind::kWelcome, 1, meta), shard, shards, knows_layout)
        .status()
        .code();
  };
  EXPECT_EQ(code(1, 2, true), ErrorCode::kOk);
  EXPECT_EQ(code(0, 2, true), ErrorCode::kRefused);
  EXPECT_EQ(code(1, 3, true), ErrorCode::kRefused);
  EXPECT_EQ(code(1, 2, false), ErrorCode::kUnavailable);
  meta.mutable_layout();
  EXPECT_EQ(code(1, 2, false), ErrorCode::kOk);
  EXPECT_EQ(check_welcome({proto::Kind::kWelcome, 1, "\xff\xff", {}}, 1, 2, true).status().code(),
            ErrorCode::kProtocol);
}

}  // namespace
}  // namespace isthmus::worker
