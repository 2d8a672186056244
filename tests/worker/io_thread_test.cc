#include "worker/io_thread.h"

#include <gtest/gtest.h>

#include "tests/worker/fake_shards.h"
#include "worker/requests.h"

namespace isthmus::worker {
namespace {

using proto::Kind;

class IoThreadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ClientConfig config = shards.config({});
    SessionOptions options;
    options.hello.mutable_layout();
    for (const ShardAddress& shard : shards_of(config)) options.shards.push_back(shard.name);
    auto started = IoThread::start(shards_of(config), std::move(options), {});
    ASSERT_TRUE(started.ok()) << started.status().to_string();
    io = std::move(*started);
    const OperationPtr hello = submit(Kind::kHello);
    hello->block_until_done();
    ASSERT_TRUE(hello->status.ok()) << hello->status.to_string();
  }
  OperationPtr submit(Kind kind) {
    auto operation = std::make_shared<Operation>(kind, std::chrono::minutes(10), io->inbox());
    operation->parts = make_parts(2);
    io->submit(operation);
    return operation;
  }

  testing::FakeShards shards{2};
  std::unique_ptr<IoThread> io;
};

TEST_F(IoThreadTest, CarriesOperationsToTheShardsAndBack) {
  for (Step step = 1; step <= 100; ++step) {
    const OperationPtr next = submit(Kind::kNextStep);
    next->block_until_done();
    ASSERT_TRUE(next->status.ok()) << next->status.to_string();
    EXPECT_EQ(io->step(), step);
  }
  EXPECT_EQ(shards.received(1, Kind::kNextStep), 100u);
}

TEST_F(IoThreadTest, ItsEndEndsWhatIsInFlightAndInTheInbox) {
  shards.on(Kind::kNextStep, [](auto, auto&, auto&) {});
  std::vector<OperationPtr> steps;
  for (int i = 0; i < 100; ++i) steps.push_back(submit(Kind::kNextStep));
  const std::shared_ptr<Inbox> inbox = io->inbox();
  io.reset();
  for (const OperationPtr& step : steps) {
    ASSERT_TRUE(step->done);
    EXPECT_EQ(step->status.code(), ErrorCode::kCancelled);
  }
  Command late = Cancel{steps[0]};  // A Pending may outlive its client.
  EXPECT_TRUE(inbox->try_push(late));
}

TEST_F(IoThreadTest, AFrameThatIsNoneEndsWhatWaitsThere) {
  shards.on(Kind::kNextStep, [&](auto shard, auto& from, auto& message) {
    proto::Message bad{Kind::kNextStepReply, message.request_id, "\xff\xff\xff", {}};
    shards.send(shard, from, std::move(bad));
  });
  const OperationPtr step = submit(Kind::kNextStep);
  step->block_until_done();
  EXPECT_EQ(step->status.code(), ErrorCode::kProtocol);
}

TEST(IoThreadStartTest, NamesAnAddressThatIsNone) {
  SessionOptions options;
  options.shards = {"shard 0 at nonsense"};
  const std::vector<ShardAddress> shards = {{{"bad host name;", 1}, "shard 0 at nonsense"}};
  const auto started = IoThread::start(shards, options, {});
  EXPECT_EQ(started.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(started.status().message().find("shard 0 at nonsense"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::worker
