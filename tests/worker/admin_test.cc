#include "worker/admin.h"

#include <gtest/gtest.h>

#include "tests/worker/fake_shards.h"

namespace isthmus::worker {
namespace {

using namespace std::chrono_literals;
using proto::Kind;

class AdminTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint16_t port : shards.ports()) addresses.push_back({"127.0.0.1", port});
    shards.on(Kind::kStatus, [this](auto shard, auto& from, auto& message) {
      if (shard == 2)
        return shards.refuse(shard, from, message.request_id, proto::REFUSE_NOT_READY, "starting");
      if (shard == 3) return;
      proto::StatusReply reply;
      reply.mutable_shard()->set_shard(shard);
      shards.send(shard, from, proto::make_message(Kind::kStatusReply, message.request_id, reply));
    });
    shards.on(Kind::kControl, [this](auto shard, auto& from, auto& message) {
      shards.send(shard, from,
                  {shard == 1 ? Kind::kStatusReply : Kind::kControlReply, message.request_id, "", {}});
    });
  }

  testing::FakeShards shards{4};
  std::vector<core::Address> addresses;
};

TEST_F(AdminTest, AsksManyAtOnceWithinOneDeadline) {
  const auto replies = status(addresses, 300ms);
  ASSERT_EQ(replies.size(), 4u);
  for (std::uint32_t shard : {0u, 1u}) {
    ASSERT_TRUE(replies[shard].ok()) << replies[shard].status().to_string();
    EXPECT_EQ(replies[shard]->shard().shard(), shard);
  }
  EXPECT_EQ(replies[2].status().code(), ErrorCode::kRefused);
  EXPECT_EQ(replies[3].status().code(), ErrorCode::kTimeout);
  EXPECT_EQ(replies[3].status().message(), "127.0.0.1:" + std::to_string(addresses[3].port) + ": no answer");
  EXPECT_TRUE(status(std::span<const core::Address>(), 1s).empty());
}

TEST_F(AdminTest, AsksOne) {
  EXPECT_EQ(status(addresses[1], 20s)->shard().shard(), 1u);
  EXPECT_EQ(status(core::Address{"bad host name;", 1}, 20s).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(AdminTest, Commands) {
  EXPECT_TRUE(control(addresses[0], proto::CONTROL_STOP, 20s).ok());
  EXPECT_EQ(shards.meta_of<proto::Control>(0, Kind::kControl).command(), proto::CONTROL_STOP);
  const auto ends = control(addresses, proto::CONTROL_EXIT, 20s);
  EXPECT_EQ(ends[1].code(), ErrorCode::kProtocol);
  EXPECT_TRUE(ends[3].ok());
  EXPECT_EQ(shards.meta_of<proto::Control>(3, Kind::kControl).command(), proto::CONTROL_EXIT);
}

}  // namespace
}  // namespace isthmus::worker
