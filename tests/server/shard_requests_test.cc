#include <cmath>
#include <cstring>

#include "tests/server/shard_support.h"

namespace isthmus::server {
namespace {

using proto::Kind;

using ShardRequestsTest = ShardTest;

TEST_F(ShardRequestsTest, WelcomesAWorker) {
  config_.regions[0].workers = 2;
  run_shard();
  RawWorker worker = connect(1);
  const proto::Message answer = worker.say(worker.hello_meta(config_, layout_));
  ASSERT_EQ(answer.kind, Kind::kWelcome);
  const auto welcome = proto::parse_meta<proto::Welcome>(answer);
  EXPECT_EQ(welcome->shard(), 0u);
  EXPECT_EQ(welcome->shards(), 1u);
  EXPECT_EQ(welcome->start_step(), 0u);
  EXPECT_FALSE(welcome->initialized());
  EXPECT_EQ(welcome->lease_ms(), 10'000u);
}

TEST_F(ShardRequestsTest, RefusesWhoDoesNotBelong) {
  run_shard();
  RawWorker worker = join();
  const auto refused = [&](proto::RefuseReason reason, std::string_view text, auto&& change) {
    RawWorker other = connect(1);
    proto::Hello hello = other.hello_meta(config_, layout_);
    change(hello);
    expect_refused(other.say(hello), reason, text);
  };
  refused(proto::REFUSE_JOB, "this is job 'small', not 'large'", [](auto& hello) { hello.set_job("large"); });
  refused(proto::REFUSE_REGION, "this is region 'r0', not 'mars'",
          [](auto& hello) { hello.set_region("mars"); });
  refused(proto::REFUSE_LAYOUT, "tensor 1 is 't1' 4 here and 't1' 5 there", [](auto& hello) {
    *hello.mutable_layout() = proto::to_table(layout_of({4, 5}));
  });
  refused(proto::REFUSE_LAYOUT, "slices", [](auto& hello) { hello.mutable_layout()->set_slice_elements(3); });
  refused(proto::REFUSE_LAYOUT, "layout: ", [](auto& hello) { hello.clear_layout(); });
  refused(proto::REFUSE_LAYOUT,
          "layout: ", [](auto& hello) { hello.mutable_layout()->mutable_tensors(0)->set_shape(0, 0); });
  refused(proto::REFUSE_LIMIT, "worker index", [](auto& hello) { hello.set_worker(1 << 20); });
  refused(proto::REFUSE_EPOCH, "a later process is worker 0 of region r0 already", [](auto& hello) {
    hello.set_worker(0);
    hello.set_incarnation(0);
  });
  EXPECT_EQ(worker.status().shard().workers_size(), 1);
}

TEST_F(ShardRequestsTest, TensorsThatNoMessageHoldsAreRefusedBeforeTheyAreAgreedOn) {
  config_.limits.message_bytes = 64 << 10;
  run_shard();
  RawWorker worker = connect();
  expect_refused(worker.say(worker.hello_meta(config_, layout_)), proto::REFUSE_LAYOUT,
                 "limits.message: 64KiB");
}

TEST_F(ShardRequestsTest, AHelloThatIsNoneIsRefused) {
  run_shard();
  RawWorker worker = connect();
  expect_refused(worker.reply(worker.ask({Kind::kHello, 0, "\xff\xff\xff", {}})), proto::REFUSE_BAD_REQUEST,
                 "malformed meta");
}

TEST_F(ShardRequestsTest, AnObserverLearnsTheLayoutAndIsNoMember) {
  run_shard();
  RawWorker observer = connect();
  proto::Hello hello = observer.hello_meta(config_, layout_);
  hello.set_role(proto::ROLE_OBSERVER);
  hello.clear_layout();
  expect_refused(observer.say(hello), proto::REFUSE_NOT_READY, "no worker has declared");
  RawWorker worker = join();
  const proto::Message answer = observer.say(hello);
  ASSERT_EQ(answer.kind, Kind::kWelcome);
  const auto welcome = proto::parse_meta<proto::Welcome>(answer);
  EXPECT_EQ(proto::from_table(welcome->layout())->hash(), layout_.hash());
  EXPECT_EQ(observer.status().shard().workers_size(), 1);
  expect_refused(observer.reply(observer.ask_next_step(1)), proto::REFUSE_NOT_MEMBER, "say hello again");
}

TEST_F(ShardRequestsTest, WhoHasNotSaidHelloMayContributeNothing) {
  run_shard();
  RawWorker member = join();
  RawWorker stranger = connect(1);
  expect_refused(stranger.reply(stranger.ask_initialize(both(5))), proto::REFUSE_NOT_MEMBER, "hello");
  expect_refused(stranger.reply(stranger.ask_push_pull(0, 1, both(5))), proto::REFUSE_NOT_MEMBER, "hello");
  expect_refused(stranger.reply(stranger.ask_next_step(1)), proto::REFUSE_NOT_MEMBER, "hello");
  EXPECT_EQ(stranger.reply(stranger.ask_leave(true)).kind, Kind::kLeaveReply) << "and may go";
  (void)member.reply(member.ask_initialize(both(2)));
  EXPECT_EQ(parameter(member), 2.0f);
}

TEST_F(ShardRequestsTest, ALaterLifeOfAWorkerReplacesTheEarlier) {
  auto workers = train(1);
  RawWorker later = join(0, 2);
  expect_refused(workers[0].reply(workers[0].ask_next_step(1)), proto::REFUSE_NOT_MEMBER, "hello");
  EXPECT_EQ(later.reply(later.ask_next_step(1)).kind, Kind::kNextStepReply);
}

TEST_F(ShardRequestsTest, TheFirstInitialValuesCount) {
  config_.regions[0].workers = 2;
  run_shard();
  RawWorker first = join(0), second = join(1);
  expect_refused(first.reply(first.ask_push_pull(0, 1, both(1))), proto::REFUSE_NOT_READY, "initial values");
  expect_refused(first.reply(first.ask_snapshot(proto::SNAPSHOT_PARAMETERS)), proto::REFUSE_NOT_READY,
                 "initial values");
  EXPECT_EQ(first.reply(first.ask_initialize(both(3))).kind, Kind::kInitializeReply);
  EXPECT_EQ(second.reply(second.ask_initialize(both(8))).kind, Kind::kInitializeReply);
  EXPECT_EQ(parameter(second), 3.0f);
  RawWorker again = connect(1);
  proto::Hello hello = again.hello_meta(config_, layout_);
  hello.set_incarnation(2);
  EXPECT_TRUE(proto::parse_meta<proto::Welcome>(again.say(hello))->initialized());
}

TEST_F(ShardRequestsTest, InitialValuesThatAreNotAllOrNotFiniteAreRefused) {
  run_shard();
  RawWorker worker = join();
  const auto refused = [&](std::map<core::SliceId, std::vector<float>> values, proto::RefuseReason reason) {
    expect_refused(worker.reply(worker.ask_initialize(values)), reason, "nitial values");
  };
  refused({{0, {1, 2, 3, 4}}}, proto::REFUSE_BAD_REQUEST);
  refused({{0, {1, 2, 3, 4}}, {7, {1, 2, 3, 4}}}, proto::REFUSE_BAD_REQUEST);
  refused({{0, {1, 2, 3, 4}}, {1, {1, 2, 3}}}, proto::REFUSE_BAD_REQUEST);
  refused({{0, {1, 2, 3, 4}}, {1, {1, 2, 3, std::nanf("")}}}, proto::REFUSE_NOT_FINITE);
  EXPECT_EQ(worker.reply(worker.ask_initialize(both(3))).kind, Kind::kInitializeReply);
  EXPECT_EQ(parameter(worker), 3.0f);
}

TEST_F(ShardRequestsTest, StepsFollowOneAnother) {
  auto workers = train(1);
  RawWorker& worker = workers[0];
  expect_refused(worker.reply(worker.ask_next_step(2)), proto::REFUSE_BAD_REQUEST,
                 "step 2 does not follow 0");
  EXPECT_EQ(worker.reply(worker.ask_next_step(1)).kind, Kind::kNextStepReply);
  EXPECT_EQ(worker.reply(worker.ask_next_step(1)).kind, Kind::kNextStepReply) << "asked again: the same";
  expect_refused(worker.reply(worker.ask_next_step(0)), proto::REFUSE_BAD_REQUEST, "step 0");
  expect_refused(worker.reply(worker.ask_push_pull(0, 1, both(1))), proto::REFUSE_BAD_REQUEST,
                 "a push for step 0; this worker computes step 1");
  expect_refused(worker.reply(worker.ask_push_pull(2, 1, both(1))), proto::REFUSE_BAD_REQUEST, "step 2");
  EXPECT_EQ(parameter(worker), 1.0f);
}

TEST_F(ShardRequestsTest, StopReachesTheWorkersAtTheirNextStep) {
  auto workers = train(2);
  const auto parked = workers[0].ask_next_step(1);
  EXPECT_FALSE(workers[0].answered(parked));
  EXPECT_EQ(workers[1].control(proto::CONTROL_STOP).kind, Kind::kControlReply);
  EXPECT_TRUE(proto::parse_meta<proto::NextStepReply>(workers[0].reply(parked))->stop());
  const proto::Message other = workers[1].reply(workers[1].ask_next_step(1));
  EXPECT_TRUE(proto::parse_meta<proto::NextStepReply>(other)->stop());
  EXPECT_EQ(host_->drained_count(), 0);
  // None of them has completed its part, and still the job ends once they have left.
  for (RawWorker& worker : workers) (void)worker.reply(worker.ask_leave(false));
  EXPECT_TRUE(host_->wait_for_drained());
}

TEST_F(ShardRequestsTest, AnObserverMayEndTheServer) {
  run_shard();
  RawWorker observer = connect();
  EXPECT_EQ(observer.control(proto::CONTROL_EXIT).kind, Kind::kControlReply);
  EXPECT_TRUE(host_->wait_for_exit());
  expect_refused(observer.control(proto::CONTROL_NONE), proto::REFUSE_BAD_REQUEST, "unknown control");
}

TEST_F(ShardRequestsTest, WhatIsNoQuestionIsRefused) {
  run_shard();
  RawWorker worker = connect();
  for (const Kind kind : {Kind::kWelcome, Kind::kReset, Kind::kLinkHello})
    expect_refused(worker.reply(worker.ask({kind, 0, {}, {}})), proto::REFUSE_BAD_REQUEST, to_string(kind));
}

// Bytes that are no frame have no request id to answer: they are counted, and the others go on.
TEST_F(ShardRequestsTest, AFrameOverTheLimitIsRefusedAndCounted) {
  config_.limits.message_bytes = 128 << 10;
  auto workers = train(1);
  RawWorker& worker = workers[0];
  // Each part is within the limit, or libzmq would cut the connection without a word.
  const core::SharedBytes part = record_of(std::vector<float>(25000));
  RawWorker stranger = connect(1);
  (void)stranger.ask({Kind::kPushPull, 0, {}, {part, part}});
  EXPECT_TRUE(eventually(
      worker, [](const proto::StatusReply& status) { return status.shard().refused_malformed() == 1; }));
  EXPECT_EQ(parameter(worker), 1.0f);
  EXPECT_NE(worker.status().last_error().find("refused a message"), std::string::npos);
  EXPECT_EQ(host_->lines_with("refused a message"), 1);
}

}  // namespace
}  // namespace isthmus::server
