#include "worker/session.h"

#include <gtest/gtest.h>

#include "worker/requests.h"

namespace isthmus::worker {
namespace {

using namespace std::chrono_literals;
using proto::Kind;
using proto::Message;

// A session with two shards, time moved by hand and everything sent kept.
class SessionTest : public ::testing::Test {
 protected:
  static SessionOptions options(proto::Role role = proto::ROLE_WORKER) {
    SessionOptions options;
    options.hello.set_role(role);
    options.hello.mutable_layout();
    options.shards = {"shard 0 at a:1", "shard 1 at b:1"};
    options.timeout = 8s;
    return options;
  }
  void restart(SessionOptions with) {
    with.log = [this](std::string_view line) { log.emplace_back(line); };
    session =
        std::make_unique<Session>(std::move(with), [this](std::uint32_t shard, Message&& message) -> Status {
          if (full == shard) return {ErrorCode::kResourceExhausted, "the queue is full"};
          sent[shard].push_back(std::move(message));
          return {};
        });
  }
  void SetUp() override { restart(options()); }

  OperationPtr submit(Kind kind, core::Duration limit = 60s) {
    auto operation = std::make_shared<Operation>(kind, limit, nullptr);
    operation->parts = make_parts(2);
    if (kind == Kind::kPushPull) {
      for (Part& part : operation->parts) {
        part.targets = {{part.shard, TensorView(&value, 1)}};
        part.push_pull.add_pull()->set_slice(part.shard);
      }
    }
    session->submit(operation, now);
    return operation;
  }
  void reply(std::uint32_t shard, Kind kind, std::uint64_t id) {
    session->on_message(shard, {kind, id, "", {}}, now);
  }
  void refuse(std::uint32_t shard, std::uint64_t id, proto::RefuseReason reason, std::string text = "no") {
    session->on_message(shard, proto::make_refusal(id, reason, std::move(text)), now);
  }
  void welcome(std::uint32_t shard, std::uint64_t id, Step start = 0, std::uint64_t lease_ms = 3000) {
    proto::Welcome meta;
    meta.set_shard(shard);
    meta.set_shards(2);
    meta.set_start_step(start);
    meta.set_initialized(true);
    meta.set_lease_ms(lease_ms);
    session->on_message(shard, proto::make_message(Kind::kWelcome, id, meta), now);
  }
  void join(Step start = 0) {
    const OperationPtr hello = submit(Kind::kHello);
    for (std::uint32_t shard : {0u, 1u}) welcome(shard, sent[shard].back().request_id, start);
    ASSERT_TRUE(hello->done);
    ASSERT_TRUE(hello->status.ok()) << hello->status.to_string();
  }
  // Lets time pass as the I/O thread would.
  void pass(core::Duration time) {
    const core::TimePoint end = now + time;
    while (session->wake_at() <= end) {
      now = std::max(now, session->wake_at());
      session->tick(now);
      if (echo)
        for (std::uint32_t shard : {0u, 1u})
          if (!sent[shard].empty() && sent[shard].back().kind == Kind::kHeartbeat)
            reply(shard, Kind::kHeartbeat, sent[shard].back().request_id);
    }
    now = end;
  }
  std::size_t count(std::uint32_t shard, Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(sent[shard].begin(), sent[shard].end(),
                      [&](const Message& message) { return message.kind == kind; }));
  }
  std::uint64_t last(std::uint32_t shard) const { return sent[shard].back().request_id; }

  std::unique_ptr<Session> session;
  core::TimePoint now{1h};
  std::vector<Message> sent[2];
  std::vector<std::string> log;
  std::optional<std::uint32_t> full;
  bool echo = true;
  float value = 0;
};

TEST_F(SessionTest, JoinsWhenAllShardsHaveWelcomedIt) {
  const OperationPtr hello = submit(Kind::kHello);
  EXPECT_EQ(count(0, Kind::kHello), 1u);
  welcome(0, last(0), 7);
  EXPECT_FALSE(hello->done);
  pass(2s);
  EXPECT_EQ(count(0, Kind::kHello), 1u);
  EXPECT_GE(count(1, Kind::kHello), 4u);  // Every 500 ms or so ...
  EXPECT_LE(count(1, Kind::kHello), 6u);
  EXPECT_EQ(log, std::vector<std::string>{"waiting for shard 1 at b:1"});  // ... but said once.
  EXPECT_EQ(count(0, Kind::kHeartbeat), 4u);  // The lease of the first runs already.
  welcome(1, sent[1].front().request_id, 9);
  EXPECT_TRUE(hello->done);
  EXPECT_EQ(session->step(), 9u);
  welcome(1, last(1), 70);  // The answer to the repeated Hello.
  EXPECT_EQ(session->step(), 9u);
}

TEST_F(SessionTest, AJoinThatIsRefusedOrLateEnds) {
  const OperationPtr refused = submit(Kind::kHello);
  refuse(1, last(1), proto::REFUSE_NOT_READY, "no values yet");
  EXPECT_FALSE(refused->done);
  refuse(1, last(1), proto::REFUSE_LAYOUT, "another model");
  ASSERT_TRUE(refused->done);
  EXPECT_EQ(refused->status.to_string(), "refused: shard 1 at b:1: another model");

  restart(options());
  const OperationPtr late = submit(Kind::kHello, 5s);
  welcome(0, last(0));
  refuse(1, last(1), proto::REFUSE_NOT_READY, "no values yet");
  pass(4999ms);
  EXPECT_FALSE(late->done);
  pass(1ms);
  ASSERT_TRUE(late->done);
  EXPECT_EQ(late->status.to_string(), "timeout: shard 1 at b:1: no welcome within 5 s: no values yet");

  restart(options());
  const OperationPtr strange = submit(Kind::kHello);
  welcome(1, last(1));
  session->on_message(0, Message(sent[0].back()), now);  // A Hello is no answer.
  EXPECT_FALSE(strange->done);
  proto::Welcome wrong;
  wrong.set_shard(1);
  wrong.set_shards(2);
  session->on_message(0, proto::make_message(Kind::kWelcome, last(0), wrong), now);
  EXPECT_EQ(strange->status.code(), ErrorCode::kRefused);
}

TEST_F(SessionTest, AnOperationEndsWhenAllShardsHaveAnswered) {
  join(4);
  const OperationPtr step = submit(Kind::kNextStep);
  const OperationPtr pull = submit(Kind::kPushPull);
  EXPECT_EQ(proto::parse_meta<proto::PushPull>(sent[0].back())->step(), 4u);
  const std::uint64_t step_id[] = {sent[0].end()[-2].request_id, sent[1].end()[-2].request_id};
  reply(0, Kind::kNextStepReply, step_id[0]);
  reply(0, Kind::kPushPullReply, last(0));
  reply(1, Kind::kPushPullReply, last(0));  // Not its own request.
  EXPECT_FALSE(step->done);
  EXPECT_FALSE(pull->done);
  reply(1, Kind::kPushPullReply, last(1));
  EXPECT_TRUE(pull->done);
  reply(1, Kind::kNextStepReply, step_id[1]);
  EXPECT_TRUE(step->done);
  EXPECT_EQ(session->step(), 5u);
}

TEST_F(SessionTest, AWrongAnswerIsNamed) {
  join();
  const OperationPtr pull = submit(Kind::kPushPull);
  reply(1, Kind::kNextStepReply, last(1));
  ASSERT_TRUE(pull->done);
  EXPECT_EQ(pull->status.to_string(),
            "protocol error: shard 1 at b:1: answered a push-pull with a next step reply");
  const OperationPtr other = submit(Kind::kPushPull);
  session->on_bad_message(0, {ErrorCode::kCorruption, "frame checksum does not match"});
  EXPECT_EQ(other->status.code(), ErrorCode::kCorruption);
}

TEST_F(SessionTest, WaitsAtABarrierWhileTheShardIsHeard) {
  join();
  const OperationPtr step = submit(Kind::kNextStep, 60s);
  pass(59s);
  EXPECT_FALSE(step->done);
  pass(1s);
  ASSERT_TRUE(step->done);
  EXPECT_EQ(step->status.to_string(), "timeout: shard 0 at a:1: next step not answered within 60 s");
  EXPECT_EQ(count(0, Kind::kHeartbeat), 120u);
}

TEST_F(SessionTest, ASilentShardIsNamed) {
  join();
  echo = false;
  const OperationPtr step = submit(Kind::kNextStep, 60s);
  reply(0, Kind::kNextStepReply, last(0));
  pass(7999ms);
  EXPECT_FALSE(step->done);
  pass(1ms);
  ASSERT_TRUE(step->done);
  EXPECT_EQ(step->status.to_string(), "timeout: shard 1 at b:1: nothing heard for 8 s");
  reply(1, Kind::kNextStepReply, last(1));  // Late: dropped.
  EXPECT_EQ(session->step(), 0u);
}

TEST_F(SessionTest, ARefusalEndsItsOperationOnly) {
  join();
  const OperationPtr bad = submit(Kind::kPushPull);
  const std::uint64_t bad_id = last(1);
  const OperationPtr good = submit(Kind::kPushPull);
  refuse(1, bad_id, proto::REFUSE_NOT_FINITE, "worker 0: NaN");
  ASSERT_TRUE(bad->done);
  EXPECT_EQ(bad->status.to_string(), "refused: shard 1 at b:1: worker 0: NaN");
  EXPECT_FALSE(good->done);
  refuse(1, last(1), proto::REFUSE_NOT_READY, "no values");
  EXPECT_EQ(good->status.code(), ErrorCode::kUnavailable);
}

TEST_F(SessionTest, AFullQueueEndsTheOperationThatDoesNotFit) {
  join();
  full = 1;
  const OperationPtr pull = submit(Kind::kPushPull);
  EXPECT_EQ(pull->status.to_string(), "resource exhausted: shard 1 at b:1: the queue is full");
  reply(0, Kind::kPushPullReply, last(0));  // Dropped.
}

TEST_F(SessionTest, RejoinsAShardThatForgotIt) {
  join(5);
  const OperationPtr before = submit(Kind::kPushPull);
  const std::uint64_t before_id = last(1);
  refuse(1, before_id, proto::REFUSE_NOT_MEMBER, "who?");
  EXPECT_FALSE(before->done);
  EXPECT_EQ(count(1, Kind::kHello), 2u);
  refuse(1, before_id, proto::REFUSE_NOT_MEMBER, "who?");  // Of something else that was on its way.
  EXPECT_EQ(count(1, Kind::kHello), 2u);
  const std::uint64_t hello = last(1);
  const OperationPtr after = submit(Kind::kPushPull);
  welcome(1, hello, 8);
  ASSERT_TRUE(before->done);
  EXPECT_EQ(before->status.to_string(),
            "unavailable: shard 1 at b:1: lost its lease, rejoined; pull and go on");
  EXPECT_EQ(session->step(), 8u);
  EXPECT_FALSE(after->done);  // Said after the Hello, so the shard knew us by then.
  reply(0, Kind::kPushPullReply, last(0));
  reply(1, Kind::kPushPullReply, last(1));
  EXPECT_TRUE(after->status.ok());
}

TEST_F(SessionTest, AFirstHelloThatLooksOldIsSaidAgainUntilTheOthersLeaseIsOver) {
  const OperationPtr hello = submit(Kind::kHello);
  welcome(1, last(1));
  refuse(0, last(0), proto::REFUSE_EPOCH, "a later process is worker 0");
  EXPECT_FALSE(hello->done);
  pass(600ms);
  ASSERT_EQ(sent[0].size(), 2u);
  refuse(0, last(0), proto::REFUSE_EPOCH, "a later process is worker 0");
  pass(600ms);
  welcome(0, last(0));
  EXPECT_TRUE(hello->done);
  EXPECT_TRUE(hello->status.ok());
}

TEST_F(SessionTest, AFirstHelloThatAlwaysLooksOldIsExplained) {
  const OperationPtr hello = submit(Kind::kHello, 5s);
  welcome(1, last(1));
  refuse(0, last(0), proto::REFUSE_EPOCH, "a later process is worker 0");
  pass(5s);
  EXPECT_EQ(hello->status.to_string(),
            "timeout: shard 0 at a:1: no welcome within 5 s: a later process is worker 0");
}

TEST_F(SessionTest, AHeartbeatCanBringTheNews) {
  join();
  pass(1s);
  ASSERT_EQ(sent[0].back().kind, Kind::kHeartbeat);
  refuse(0, last(0), proto::REFUSE_NOT_MEMBER);
  EXPECT_EQ(sent[0].back().kind, Kind::kHello);
  refuse(0, last(0), proto::REFUSE_EPOCH, "worker 0 has a newer life");  // For good ...
  const OperationPtr pull = submit(Kind::kPushPull);
  refuse(0, last(0), proto::REFUSE_NOT_MEMBER);  // ... until somebody asks again.
  EXPECT_EQ(sent[0].back().kind, Kind::kHello);
  refuse(0, last(0), proto::REFUSE_EPOCH, "worker 0 has a newer life");
  EXPECT_EQ(pull->status.to_string(), "refused: shard 0 at a:1: worker 0 has a newer life");
}

// The steps that a shard was told of.
std::vector<Step> steps_told(const std::vector<Message>& sent) {
  std::vector<Step> steps;
  for (const Message& message : sent)
    if (message.kind == Kind::kNextStep) steps.push_back(proto::parse_meta<proto::NextStep>(message)->step());
  return steps;
}

TEST_F(SessionTest, ShardsThatLetItInAtDifferentStepsAreBroughtTogether) {
  const OperationPtr hello = submit(Kind::kHello);
  welcome(1, last(1), 9);
  welcome(0, last(0), 7);
  ASSERT_TRUE(hello->done);
  EXPECT_EQ(session->step(), 9u);
  EXPECT_EQ(steps_told(sent[0]), (std::vector<Step>{8, 9}));
  EXPECT_EQ(steps_told(sent[1]), (std::vector<Step>{}));
  reply(0, Kind::kNextStepReply, last(0));  // Matters to nobody.

  // One of them restarts from a checkpoint, the other's lease ends while the region goes on.
  for (const auto& [shard, start] : {std::pair{0u, Step{8}}, {1u, Step{11}}}) {
    const OperationPtr pull = submit(Kind::kPushPull);
    refuse(shard, last(shard), proto::REFUSE_NOT_MEMBER);
    welcome(shard, last(shard), start);
    EXPECT_EQ(pull->status.code(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(session->step(), 11u);
  EXPECT_EQ(steps_told(sent[0]), (std::vector<Step>{8, 9, 9, 10, 11}));
  EXPECT_EQ(steps_told(sent[1]), (std::vector<Step>{}));
  const OperationPtr next = submit(Kind::kNextStep);
  EXPECT_EQ(steps_told(sent[0]).back(), 12u);
  EXPECT_EQ(steps_told(sent[1]), (std::vector<Step>{12}));
  EXPECT_FALSE(next->done);
}

// A shard that has begun a step takes no more pushes for the one before.
TEST_F(SessionTest, AStepThatOneShardHasBegunIsNotTakenBack) {
  join(5);
  const OperationPtr next = submit(Kind::kNextStep);
  refuse(1, last(1), proto::REFUSE_NOT_MEMBER);
  welcome(1, last(1), 5);
  EXPECT_EQ(next->status.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(session->step(), 6u);
  EXPECT_EQ(steps_told(sent[0]), (std::vector<Step>{6}));
  EXPECT_EQ(steps_told(sent[1]), (std::vector<Step>{6, 6}));
}

TEST_F(SessionTest, CatchingUpWaitsForAFullQueue) {
  const OperationPtr hello = submit(Kind::kHello);
  welcome(1, last(1), 2);
  full = 0;
  welcome(0, last(0), 0);
  EXPECT_TRUE(hello->done);
  EXPECT_EQ(steps_told(sent[0]), (std::vector<Step>{}));
  full.reset();
  pass(1s);
  EXPECT_EQ(steps_told(sent[0]), (std::vector<Step>{1, 2}));
}

TEST_F(SessionTest, ASecondSnapshotEndsTheFirst) {
  join();
  const OperationPtr first = submit(Kind::kSnapshot);
  const OperationPtr second = submit(Kind::kSnapshot);
  EXPECT_EQ(first->status.code(), ErrorCode::kCancelled);
  EXPECT_FALSE(second->done);
}

TEST_F(SessionTest, AStopCancelsTheNextStep) {
  join();
  const OperationPtr step = submit(Kind::kNextStep);
  proto::NextStepReply stop;
  stop.set_stop(true);
  session->on_message(0, proto::make_message(Kind::kNextStepReply, last(0), stop), now);
  reply(1, Kind::kNextStepReply, last(1));
  ASSERT_TRUE(step->done);
  EXPECT_EQ(step->status.to_string(), "cancelled: the job ends");
  EXPECT_EQ(session->step(), 0u);
}

TEST_F(SessionTest, OneThatLeftNeitherBeatsNorRejoins) {
  join();
  const OperationPtr leave = submit(Kind::kLeave);
  reply(0, Kind::kLeaveReply, last(0));
  pass(3s);
  EXPECT_EQ(count(0, Kind::kHeartbeat), 0u);
  EXPECT_EQ(count(1, Kind::kHeartbeat), 6u);  // Waits there for the last sync.
  refuse(1, last(1), proto::REFUSE_NOT_MEMBER);
  EXPECT_EQ(count(1, Kind::kHello), 1u);
  reply(1, Kind::kLeaveReply, sent[1][1].request_id);
  EXPECT_TRUE(leave->done);
  EXPECT_EQ(submit(Kind::kPushPull)->status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(submit(Kind::kNextStep)->status.code(), ErrorCode::kInvalidArgument);
  const OperationPtr final_values = submit(Kind::kSnapshot);
  for (std::uint32_t shard : {0u, 1u}) reply(shard, Kind::kSnapshotReply, last(shard));
  EXPECT_TRUE(final_values->status.ok() && final_values->done);
  session->end({ErrorCode::kCancelled, "over"});
  EXPECT_EQ(count(0, Kind::kLeave), 1u);
}

TEST_F(SessionTest, AnObserverBeatsOnlyWhileItWaits) {
  restart(options(proto::ROLE_OBSERVER));
  const OperationPtr hello = submit(Kind::kHello);
  for (std::uint32_t shard : {0u, 1u}) welcome(shard, last(shard), 0, 0);
  ASSERT_TRUE(hello->done);
  pass(100s);
  EXPECT_EQ(count(0, Kind::kHeartbeat), 0u);
  const OperationPtr snapshot = submit(Kind::kSnapshot, 1h);
  pass(100s);
  EXPECT_FALSE(snapshot->done);
  EXPECT_GE(count(0, Kind::kHeartbeat), 12u);
  refuse(0, last(0), proto::REFUSE_NOT_MEMBER);  // Of a heartbeat: no lease to lose.
  EXPECT_EQ(count(0, Kind::kHello), 1u);
  session->end({ErrorCode::kCancelled, "over"});
  EXPECT_EQ(snapshot->status.code(), ErrorCode::kCancelled);
  EXPECT_EQ(count(0, Kind::kLeave), 0u);
}

TEST_F(SessionTest, TheEndIsForAll) {
  join();
  const OperationPtr pull = submit(Kind::kPushPull);
  session->cancel(submit(Kind::kNextStep));
  session->end({ErrorCode::kCancelled, "over"});
  EXPECT_EQ(pull->status.message(), "over");
  EXPECT_EQ(submit(Kind::kPushPull)->status.message(), "over");
  for (std::uint32_t shard : {0u, 1u}) {
    EXPECT_EQ(sent[shard].back().kind, Kind::kLeave);
    EXPECT_FALSE(proto::parse_meta<proto::Leave>(sent[shard].back())->done());
  }
  EXPECT_EQ(session->wake_at(), core::TimePoint::max());
}

TEST_F(SessionTest, ACancelledOperationIsForgotten) {
  join();
  const OperationPtr pull = submit(Kind::kPushPull);
  const std::weak_ptr<Operation> watch = pull;
  session->cancel(pull);
  EXPECT_EQ(pull.use_count(), 1);
  reply(0, Kind::kPushPullReply, last(0));
  EXPECT_FALSE(pull->done);
}

}  // namespace
}  // namespace isthmus::worker
