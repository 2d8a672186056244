#include "tests/server/shard_support.h"

namespace isthmus::server {
namespace {

using proto::Kind;

using ShardRepliesTest = ShardTest;

TEST_F(ShardRepliesTest, APushPullSeesItsOwnPush) {
  for (const auto policy : {core::CommitPolicyKind::kBsp, core::CommitPolicyKind::kSsp}) {
    config_.commit.policy = policy;
    auto workers = train(1, 0);
    for (Step step = 0; step < 3; ++step) {
      const auto asked = workers[0].ask_push_pull(step, 1, both(1), {{0, 0}, {1, 0}});
      const Pulled got = pulled_by(workers[0].reply(asked));
      EXPECT_EQ(got.values.at(0)[3], -static_cast<float>(step + 1));
      EXPECT_EQ(got.values.at(1)[0], -static_cast<float>(step + 1));
      (void)workers[0].reply(workers[0].ask_next_step(step + 1));
    }
    stop();
  }
}

TEST_F(ShardRepliesTest, OnlyNewerSlicesTravel) {
  auto workers = train(1, 0);
  RawWorker& worker = workers[0];
  const Pulled all = pulled_by(worker.reply(worker.ask_push_pull(0, 0, {}, {{0, 0}, {1, 0}})));
  EXPECT_EQ(all.versions, (std::map<core::SliceId, std::uint64_t>{{0, 1}, {1, 1}}));
  EXPECT_TRUE(pulled_by(worker.reply(worker.ask_push_pull(0, 0, {}, all.versions))).values.empty());
  const auto pushed = worker.ask_push_pull(0, 1, {{1, {1, 1, 1, 1}}}, all.versions);
  const Pulled newer = pulled_by(worker.reply(pushed));
  EXPECT_EQ(newer.versions, (std::map<core::SliceId, std::uint64_t>{{1, 2}}));
  // A version that this life of the shard has not reached yet comes from an earlier one.
  EXPECT_EQ(pulled_by(worker.reply(worker.ask_push_pull(0, 0, {}, {{0, 99}}))).versions.at(0), 1u);
}

TEST_F(ShardRepliesTest, PullsAreCompressedAsConfigured) {
  config_.compression.lan.kind = core::CodecKind::kFp16;
  auto workers = train(1, 1.5f);
  const proto::Message answer = workers[0].reply(workers[0].ask_push_pull(0, 0, {}, {{0, 0}}));
  EXPECT_EQ(answer.payload_bytes(), 8u);
  EXPECT_EQ(pulled_by(answer).values.at(0)[0], 1.5f);
}

TEST_F(ShardRepliesTest, AnAnswerOverTheLimitSaysSo) {
  config_.limits.message_bytes = 68 << 10;
  auto workers = train(1);
  proto::PushPull meta;
  for (int i = 0; i < 10'000; ++i) meta.add_pull()->set_slice(0);
  const proto::Message answer = workers[0].reply(workers[0].ask(Kind::kPushPull, meta));
  expect_refused(answer, proto::REFUSE_LIMIT, "raise limits.message");
}

TEST_F(ShardRepliesTest, NotMoreThanSoManyAnswersOfOnePeerMayWait) {
  auto workers = train(2);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i <= kMaxParkedOfOne; ++i) last = workers[0].ask_next_step(1);
  expect_refused(workers[0].reply(last), proto::REFUSE_LIMIT, "too many requests");
  EXPECT_EQ(workers[1].reply(workers[1].ask_next_step(1)).kind, Kind::kNextStepReply);
  EXPECT_EQ(workers[0].reply(1 + 1 + 1).kind, Kind::kNextStepReply) << "the first that waited";
}

TEST_F(ShardRepliesTest, SnapshotsShowNowBeforeTheLastSyncAndAfterIt) {
  auto workers = train(1, 0);
  RawWorker& worker = workers[0];
  RawWorker observer = connect(9);
  RawWorker second = connect(9);
  const auto own = observer.ask_snapshot(proto::SNAPSHOT_OWN);
  const auto final = second.ask_snapshot(proto::SNAPSHOT_FINAL);
  EXPECT_FALSE(observer.answered(own));
  EXPECT_FALSE(second.answered(final));
  EXPECT_EQ(worker.reply(worker.ask_push_pull(0, 1, both(1))).kind, Kind::kPushPullReply);
  EXPECT_EQ(parameter(worker), -1.0f);
  // With one region the anchor is what is there.
  EXPECT_EQ(snapshot_in(worker.reply(worker.ask_snapshot(proto::SNAPSHOT_ANCHOR, 5))).values.at(1)[0], -1.0f);
  (void)worker.reply(worker.ask_next_step(1));
  (void)worker.ask_leave(true);
  EXPECT_EQ(snapshot_in(observer.reply(own)).values.at(0)[0], -1.0f);
  const proto::Message last = second.reply(final);
  EXPECT_EQ(snapshot_in(last).values.at(0)[0], -1.0f);
  EXPECT_EQ(proto::parse_meta<proto::SnapshotReply>(last)->step(), 1u);
  expect_refused(worker.reply(worker.ask_snapshot(static_cast<proto::SnapshotSource>(9))),
                 proto::REFUSE_BAD_REQUEST, "unknown snapshot source");
}

TEST_F(ShardRepliesTest, AskingForASnapshotAgainForgetsTheFirstQuestion) {
  auto workers = train(1);
  RawWorker observer = connect(9);
  const auto first = observer.ask_snapshot(proto::SNAPSHOT_FINAL);
  const auto second = observer.ask_snapshot(proto::SNAPSHOT_FINAL);
  EXPECT_FALSE(observer.answered(second));
  (void)workers[0].ask_leave(true);
  EXPECT_EQ(observer.reply(second).kind, Kind::kSnapshotReply);
  EXPECT_FALSE(observer.answered(first));
}

TEST_F(ShardRepliesTest, StatusSaysWhatTheShardDoes) {
  link_states_ = {{.peer = {0, 0},
                   .up = true,
                   .sent_bytes = 10,
                   .received_bytes = 20,
                   .reconnects = 3,
                   .refused = 4,
                   .queued_bytes = 0,
                   .rtt = std::chrono::milliseconds(80),
                   .last_error = "cut"}};
  config_.regions[0].workers = 2;
  run_shard();
  RawWorker worker = join(0);
  EXPECT_EQ(worker.status().shard().phase(), proto::PHASE_WAITING);
  RawWorker other = join(1);
  (void)worker.reply(worker.ask_initialize(both(1)));
  (void)worker.ask_push_pull(0, 7, both(2));
  (void)other.reply(other.ask_push_pull(0, 3, both(2)));
  (void)worker.ask_next_step(1);
  (void)other.reply(other.ask_next_step(1));

  const proto::StatusReply status = worker.status();
  EXPECT_EQ(status.job(), "small");
  EXPECT_EQ(status.region(), "r0");
  EXPECT_FALSE(status.version().empty());
  const proto::ShardStatus& shard = status.shard();
  EXPECT_EQ(shard.phase(), proto::PHASE_TRAINING);
  EXPECT_EQ(shard.slices(), 2u);
  EXPECT_EQ(shard.elements(), 8u);
  EXPECT_EQ(shard.clock(), 1u);
  EXPECT_EQ(shard.commits(), 2u);
  EXPECT_EQ(shard.samples(), 10u);
  EXPECT_EQ(shard.parameter_norm(), 0.0) << "a pass over everything, which nobody asked for";
  EXPECT_NEAR(worker.status(true).shard().parameter_norm(), std::sqrt(8.0), 1e-9);  // All of them 1 - 2.
  EXPECT_GT(shard.received_bytes(), 0u);
  EXPECT_GT(shard.sent_bytes(), 0u);
  ASSERT_EQ(shard.workers_size(), 2);
  EXPECT_EQ(shard.workers(1).worker(), 1u);
  EXPECT_EQ(shard.workers(1).step(), 1u);
  EXPECT_EQ(shard.workers(1).lease_left_ms(), 10'000u);
  ASSERT_EQ(status.links_size(), 1);
  EXPECT_TRUE(status.links(0).up());
  EXPECT_EQ(status.links(0).region(), "r0");
  EXPECT_EQ(status.links(0).sent_bytes(), 10u);
  EXPECT_EQ(status.links(0).received_bytes(), 20u);
  EXPECT_EQ(status.links(0).reconnects(), 3u);
  EXPECT_EQ(status.links(0).refused(), 4u);
  EXPECT_EQ(status.links(0).rtt_us(), 80'000u);
  EXPECT_EQ(status.links(0).last_error(), "cut");

  const auto left = worker.ask_leave(true, true);
  (void)other.reply(other.ask_leave(true, true));
  (void)worker.reply(left);
  EXPECT_EQ(worker.status().shard().phase(), proto::PHASE_DRAINED);
  EXPECT_TRUE(worker.status().shard().workers(0).done());
}

TEST_F(ShardRepliesTest, WhatAWorkersStepsCostAddsUp) {
  auto workers = train(1);
  const auto times_of = [&] { return workers[0].status().shard().workers(0).times(); };
  for (const Step step : {1, 2, 2}) {  // The last is said again, and was counted.
    proto::NextStep next;
    next.set_step(step);
    next.mutable_times()->set_compute_us(1000);
    next.mutable_times()->set_encode_us(10 * step);
    next.mutable_times()->set_exchange_us(200);
    next.mutable_times()->set_barrier_us(30);
    EXPECT_EQ(workers[0].reply(workers[0].ask(Kind::kNextStep, next)).kind, Kind::kNextStepReply);
  }
  EXPECT_EQ(times_of().compute_us(), 2000u);
  EXPECT_EQ(times_of().encode_us(), 30u);
  EXPECT_EQ(times_of().exchange_us(), 400u);
  EXPECT_EQ(times_of().barrier_us(), 60u);
  join(0, 2);  // Another life of it: the job's account goes on.
  EXPECT_EQ(times_of().compute_us(), 2000u);
}

}  // namespace
}  // namespace isthmus::server
