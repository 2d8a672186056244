#include "server/shard.h"

#include "server/wan_messages.h"
#include "tests/server/shard_support.h"

namespace isthmus::server {
namespace {

using proto::Kind;
using std::chrono::seconds;

TEST_F(ShardTest, APortThatIsTakenIsNamed) {
  run_shard();
  config_.regions[0].servers[0].lan_bind.port = shard_->port();
  auto second = Shard::create({&config_, 0, 0, 0, 100}, context_, clock_, *table_, *host_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(second.status().message().find("lan of region r0, shard 0: port " +
                                           std::to_string(shard_->port()) + " of 127.0.0.1 is in use"),
            0u)
      << second.status().message();
}

TEST_F(ShardTest, EndsWhenTold) {
  run_shard();
  RawWorker worker = join();
  shard_->stop();
  thread_.join();
}

TEST_F(ShardTest, TheJobEndsWhenItsWorkersAreDone) {
  auto workers = train(2, 0);
  for (std::size_t i = 0; i < 2; ++i) (void)workers[i].ask_push_pull(0, 1, both(1));
  const auto first = workers[0].ask_leave(true, true);
  EXPECT_FALSE(workers[0].answered(first));
  EXPECT_EQ(host_->drained_count(), 0);
  const auto second = workers[1].ask_leave(true, true);
  for (const auto& [worker, id] : {std::pair(&workers[0], first), std::pair(&workers[1], second)}) {
    const proto::Message answer = worker->reply(id);
    ASSERT_EQ(answer.kind, Kind::kLeaveReply);
    EXPECT_TRUE(proto::parse_meta<proto::LeaveReply>(answer)->final());
  }
  EXPECT_TRUE(host_->wait_for_drained());
  EXPECT_EQ(parameter(workers[0]), -1.0f) << "what they sent before they left is in it";
  EXPECT_EQ(host_->lines_with("training has ended"), 1);
  EXPECT_EQ(table_->own_clock(), wan::kFinishedClock);
  RawWorker late = connect(2);
  expect_refused(late.say(late.hello_meta(config_, layout_)), proto::REFUSE_BAD_REQUEST, "the job has ended");
  EXPECT_EQ(host_->drained_count(), 1);
}

TEST_F(ShardTest, TheJobEndsAlsoWhenTheLastWorkerDies) {
  auto workers = train(2);
  (void)workers[0].reply(workers[0].ask_leave(true));
  EXPECT_EQ(host_->drained_count(), 0);
  advance(config_.commit.lease);
  EXPECT_TRUE(host_->wait_for_drained());
}

TEST_F(ShardTest, AWorkerThatMerelyGoesAwayMayComeBack) {
  auto workers = train(1);
  (void)workers[0].reply(workers[0].ask_next_step(1));
  (void)workers[0].reply(workers[0].ask_leave(false));
  RawWorker again = connect(0);
  const proto::Message welcome = again.say(again.hello_meta(config_, layout_));
  ASSERT_EQ(welcome.kind, Kind::kWelcome);
  EXPECT_EQ(proto::parse_meta<proto::Welcome>(welcome)->start_step(), 1u);
  EXPECT_EQ(host_->drained_count(), 0);
}

TEST_F(ShardTest, ExpectedWorkersAreWaitedForNoLongerThanTheTimeout) {
  config_.regions[0].workers = 2;
  config_.commit.lease = seconds(1000);
  run_shard();
  RawWorker worker = join();
  (void)worker.reply(worker.ask_initialize(both(1)));
  const auto next = worker.ask_next_step(1);
  EXPECT_FALSE(worker.answered(next));
  advance(config_.limits.operation_timeout);
  EXPECT_EQ(worker.reply(next).kind, Kind::kNextStepReply);
}

TEST_F(ShardTest, TrainingStopsAfterTheTimeThatWasAsked) {
  config_.trainer.stop.time = seconds(60);
  config_.commit.lease = seconds(1000);
  auto workers = train(1);
  const proto::Message before = workers[0].reply(workers[0].ask_next_step(1));
  EXPECT_FALSE(proto::parse_meta<proto::NextStepReply>(before)->stop());
  advance(seconds(60));
  (void)workers[0].answered(0);
  const proto::Message after = workers[0].reply(workers[0].ask_next_step(2));
  EXPECT_TRUE(proto::parse_meta<proto::NextStepReply>(after)->stop());
}

TEST_F(ShardTest, AProcessMayStopTraining) {
  auto workers = train(1);
  shard_->request_stop_training();
  (void)workers[0].answered(0);
  const proto::Message answer = workers[0].reply(workers[0].ask_next_step(1));
  EXPECT_TRUE(proto::parse_meta<proto::NextStepReply>(answer)->stop());
}

// ---- Checkpoints.

class ShardCheckpointTest : public ShardTest {
 protected:
  ShardCheckpointTest() { config_.checkpoint = core::CheckpointConfig{.directory = "", .every_steps = 2}; }

  void step(RawWorker& worker, Step step, float gradient = 1) {
    (void)pulled_by(worker.reply(worker.ask_push_pull(step, 1, both(gradient), {{0, 0}})));
    EXPECT_EQ(worker.reply(worker.ask_next_step(step + 1)).kind, proto::Kind::kNextStepReply);
  }
};

TEST_F(ShardCheckpointTest, SavesItsFirstValuesAndThenBetweenTwoSteps) {
  auto workers = train(2, 10);
  const auto first = host_->wait_for_captured(1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->clock, 0u);
  EXPECT_EQ(first->slices[0].parameters[0], 10.0f);
  for (Step step = 0; step < 2; ++step) {
    std::vector<std::uint64_t> asked;
    for (auto& worker : workers) (void)worker.ask_push_pull(step, 1, both(1));
    for (auto& worker : workers) asked.push_back(worker.ask_next_step(step + 1));
    for (std::size_t i = 0; i < 2; ++i) (void)workers[i].reply(asked[i]);
  }
  (void)workers[0].ask_push_pull(2, 1, both(1));
  const auto second = host_->wait_for_captured(2);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->clock, 2u);
  EXPECT_EQ(second->slices[0].parameters[0], 8.0f);
  EXPECT_EQ(second->slices[1].committed_step, 2u);
  EXPECT_EQ(second->members.size(), 2u);
}

TEST_F(ShardCheckpointTest, GoesOnWhereItWas) {
  auto workers = train(1, 10);
  for (Step each = 0; each < 2; ++each) step(workers[0], each);
  to_restore_ = host_->wait_for_captured(2);
  ASSERT_TRUE(to_restore_);
  stop();
  run_shard();
  RawWorker worker = connect();
  const auto welcome = proto::parse_meta<proto::Welcome>(worker.say(worker.hello_meta(config_, layout_)));
  EXPECT_EQ(welcome->start_step(), 2u);
  EXPECT_TRUE(welcome->initialized());
  // Whoever comes back offers values; the saved ones stay.
  EXPECT_EQ(worker.reply(worker.ask_initialize(both(3))).kind, proto::Kind::kInitializeReply);
  EXPECT_EQ(parameter(worker), 8.0f);
  step(worker, 2);
  EXPECT_EQ(parameter(worker), 7.0f);
  EXPECT_EQ(worker.status().shard().commits(), 6u);
  EXPECT_EQ(worker.status().shard().samples(), 3u);
}

// A worker that is ahead tells of the steps that the shard has lost; nobody computes them again.
TEST_F(ShardCheckpointTest, StepsThatWereLostAreSkipped) {
  auto workers = train(1, 10);
  for (Step each = 0; each < 2; ++each) step(workers[0], each);
  to_restore_ = host_->wait_for_captured(2);
  stop();
  run_shard();
  RawWorker worker = join();
  for (Step missed = 3; missed <= 9; ++missed) (void)worker.ask_next_step(missed);
  step(worker, 9);
  EXPECT_EQ(parameter(worker), 7.0f);
  EXPECT_EQ(worker.status().shard().clock(), 10u);
}

TEST_F(ShardCheckpointTest, ToldToEndItSavesAndAnswersNobodyAnyMore) {
  auto workers = train(2, 10);
  ASSERT_TRUE(host_->wait_for_captured(1));
  (void)workers[0].ask_push_pull(0, 1, both(1));  // The other one's is missing: nothing is committed.
  EXPECT_FALSE(workers[0].answered(0));
  ShardEvent end = CaptureAndEnd{};
  ASSERT_TRUE(shard_->mailbox().try_push(end));
  const auto saved = host_->wait_for_captured(2);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->clock, 0u);
  EXPECT_EQ(saved->slices[0].parameters[0], 10.0f);
  thread_.join();  // It has ended by itself.
}

TEST_F(ShardCheckpointTest, WithoutValuesThereIsNothingToSave) {
  run_shard();
  RawWorker worker = join();
  ShardEvent end = CaptureAndEnd{};
  ASSERT_TRUE(shard_->mailbox().try_push(end));
  EXPECT_FALSE(host_->wait_for_captured(1));
  thread_.join();
}

TEST_F(ShardTest, EachShardOfARegionHoldsItsSlices) {
  config_.regions[0].servers[0].shards = 2;
  run_shard();
  RawWorker worker = join();
  const auto first = worker.status().shard();
  EXPECT_EQ(first.shard(), 0u);
  EXPECT_EQ(first.slices(), 1u);
}

// ---- with another region, of which this shard sees the messages only

class ShardWithPeerTest : public ShardTest {
 protected:
  ShardWithPeerTest() {
    config_ = small_job({{1}, {1}});
    config_.sync.deadline = seconds(1);
    of_us_ = Directory(config_, layout_).home_of(0) == 0 ? 0 : 1;
    of_them_ = 1 - of_us_;
  }
  void link_up() {
    RegionTable::Entry* entry = table_->find(kPeer);
    entry->incarnation = 200;
    entry->up = true;
    entry->generation.fetch_add(1);
    shard_->mailbox().wake();
  }
  void receive(proto::Message message) {
    ShardEvent event = WanMessage{kPeer, std::move(message)};
    ASSERT_TRUE(shard_->mailbox().try_push(event));
  }
  Reset reset(std::uint64_t round, float value, bool final = false) {
    return {{1, round}, {100, 0}, final, final, record_of(std::vector<float>(4, value))};
  }
  // A worker that has joined, and the peer's initial values of 5 beside our own of 1.
  RawWorker start() {
    run_shard();
    link_up();
    RawWorker worker = join();
    const auto initialized = worker.ask_initialize(both(1));
    EXPECT_FALSE(worker.answered(initialized)) << "the peer's slice is not here yet";
    receive(to_message(of_them_, reset(0, 5), 0, 0));
    EXPECT_EQ(worker.reply(initialized).kind, Kind::kInitializeReply);
    return worker;
  }

  static constexpr wan::Peer kPeer{1, 0};
  core::SliceId of_us_ = 0, of_them_ = 0;
};

TEST_F(ShardWithPeerTest, EachSliceStartsWithItsHomesValues) {
  RawWorker worker = start();
  const Pulled got = snapshot_in(worker.reply(worker.ask_snapshot(proto::SNAPSHOT_PARAMETERS)));
  EXPECT_EQ(got.values.at(of_us_)[0], 1.0f);
  EXPECT_EQ(got.values.at(of_them_)[0], 5.0f);
  ASSERT_TRUE(host_->wait_for_sent(2));  // Our values, and that theirs have arrived.
  for (const WanMessage& message : host_->sent()) {
    EXPECT_EQ(message.message.kind,
              message.message.request_id == of_us_ ? Kind::kReset : Kind::kGlobalDeltaAck);
    EXPECT_EQ(message.from, kPeer);
  }
}

TEST_F(ShardWithPeerTest, AStepIsToldToTheHomeAndItsAnswerReachesTheWorker) {
  RawWorker worker = start();
  (void)worker.reply(worker.ask_push_pull(0, 8, both(2)));
  (void)worker.reply(worker.ask_next_step(1));
  ASSERT_TRUE(host_->wait_for_sent(3));
  const WanMessage told = host_->sent()[2];
  ASSERT_EQ(told.message.kind, Kind::kContribution);
  EXPECT_EQ(told.message.request_id, of_them_);
  Step clock = 0;
  const auto contribution = to_contribution(told.message, clock);
  EXPECT_EQ(contribution->samples, 8u);
  EXPECT_EQ(clock, 1u);
  Reset folded = reset(1, 4);
  folded.folded = contribution->id;
  receive(to_message(of_them_, folded, 0, 7));
  ASSERT_TRUE(host_->wait_for_sent(4));
  const Pulled got = pulled_by(worker.reply(worker.ask_push_pull(1, 0, {}, {{of_them_, 0}})));
  EXPECT_EQ(got.values.at(of_them_)[0], 4.0f);
  EXPECT_EQ(table_->find(kPeer)->clock.load(), 7u) << "clocks ride on every message";
}

TEST_F(ShardWithPeerTest, WorkersWaitAtTheHardBoundAndGoOnWhenTheOtherRegionDoes) {
  config_.sync.hard_staleness = 3;
  RawWorker worker = start();
  for (const Step step : {1, 2})
    EXPECT_EQ(worker.reply(worker.ask_next_step(step)).kind, Kind::kNextStepReply);
  const auto third = worker.ask_next_step(3);
  EXPECT_FALSE(worker.answered(third));
  EXPECT_TRUE(worker.status().shard().halted());
  table_->advance_clock(kPeer, 1);  // A heartbeat.
  shard_->mailbox().wake();
  EXPECT_EQ(worker.reply(third).kind, Kind::kNextStepReply);
  EXPECT_FALSE(worker.status().shard().halted());
}

TEST_F(ShardWithPeerTest, AnAnchorIsShownAsOfTheRoundThatWasAsked) {
  RawWorker worker = start();
  RawWorker observer = connect(9);
  const auto of_round = observer.ask_snapshot(proto::SNAPSHOT_ANCHOR, 1);
  EXPECT_FALSE(observer.answered(of_round));
  receive(to_message(of_them_, reset(1, 6), 0, 0));
  EXPECT_FALSE(observer.answered(of_round)) << "our own slice is at round 0 still";
  receive(to_message(of_them_, reset(2, 7), 0, 0));
  // Our slice's round closes without the other region, after the deadline.
  (void)worker.reply(worker.ask_push_pull(0, 1, both(2)));
  (void)worker.reply(worker.ask_next_step(1));
  (void)worker.answered(0);
  advance(seconds(1));
  const proto::Message answer = observer.reply(of_round);
  const Pulled got = snapshot_in(answer);
  EXPECT_EQ(got.values.at(of_them_)[0], 6.0f) << "of that round, though a later one is here";
  EXPECT_EQ(got.values.at(of_us_)[0], -1.0f);
  const proto::Message passed = observer.reply(observer.ask_snapshot(proto::SNAPSHOT_ANCHOR, 1));
  const auto too_late = proto::parse_meta<proto::SnapshotReply>(passed);
  EXPECT_TRUE(too_late->too_late());
  EXPECT_EQ(too_late->newest_round(), 2u);
}

TEST_F(ShardWithPeerTest, WhatThePeerGotWrongIsCountedAndReported) {
  RawWorker worker = start();
  receive({Kind::kGlobalDelta, 99, {}, {}});
  receive({Kind::kGlobalDelta, of_us_, {}, {}});
  EXPECT_TRUE(eventually(
      worker, [](const proto::StatusReply& status) { return status.shard().refused_malformed() == 2; }));
  EXPECT_NE(worker.status().last_error().find("region r1"), std::string::npos)
      << worker.status().last_error();
  EXPECT_EQ(host_->lines_with("refused a message from region r1"), 1) << "once a second at most";
  advance(seconds(1));
  receive({Kind::kGlobalDelta, 99, {}, {}});
  EXPECT_TRUE(eventually(worker, [&](const proto::StatusReply&) {
    return host_->lines_with("refused a message from region r1") == 2;
  }));
}

TEST_F(ShardWithPeerTest, TheLastSyncWaitsForTheOtherRegion) {
  RawWorker worker = start();
  (void)worker.reply(worker.ask_push_pull(0, 1, both(2)));
  const auto left = worker.ask_leave(true, true);
  EXPECT_FALSE(worker.answered(left));
  EXPECT_TRUE(eventually(worker, [](const proto::StatusReply& status) {
    return status.shard().phase() == proto::PHASE_DRAINING;
  }));
  EXPECT_EQ(table_->own_clock(), wan::kFinishedClock);
  // Their last word on our slice, and the final values of theirs.
  const std::vector<float> zeros(4);
  receive(to_message(of_us_, Contribution{{200, 1}, {1, 0}, 1, true, 1, record_of(zeros)}, 0));
  receive(to_message(of_them_, reset(1, 9, true), 0, 0));
  std::optional<Reset> last;
  for (std::size_t seen = 0; !last && host_->wait_for_sent(seen + 1); ++seen) {
    const proto::Message message = host_->sent()[seen].message;
    Step clock = 0;
    if (message.request_id != of_us_) continue;
    if (message.kind == Kind::kReset && to_reset(message, clock)->final) last = *to_reset(message, clock);
    if (message.kind == Kind::kGlobalDelta)
      receive(to_message(of_us_, GlobalDeltaAck{to_global_delta(message, clock)->id, 200}));
    if (message.kind == Kind::kReset)
      receive(to_message(of_us_, GlobalDeltaAck{to_reset(message, clock)->id, 200}));
  }
  ASSERT_TRUE(last);
  EXPECT_EQ(worker.reply(left).kind, Kind::kLeaveReply);
  EXPECT_TRUE(host_->wait_for_drained());
  const Pulled own = snapshot_in(worker.reply(worker.ask_snapshot(proto::SNAPSHOT_OWN)));
  const Pulled final = snapshot_in(worker.reply(worker.ask_snapshot(proto::SNAPSHOT_FINAL)));
  EXPECT_EQ(own.values.at(of_them_)[0], 3.0f);
  EXPECT_EQ(final.values.at(of_them_)[0], 9.0f);
  EXPECT_EQ(final.values.at(of_us_)[0], reinterpret_cast<const float*>(last->values.view.data())[0]);
  EXPECT_EQ(final.values.at(of_us_)[0], 0.0f) << "the mean of our 2 and their 0";
}

// Its workers are done and gone: it ends without them, but not without what the other region waits for.
TEST_F(ShardWithPeerTest, RestartedInTheLastSyncItHasItsLastWordOnceItsAnchorsAreHere) {
  config_.checkpoint = core::CheckpointConfig{.directory = "", .every_steps = 1000};
  config_.trainer.stop.steps = 1;
  {
    RawWorker worker = start();
    (void)worker.reply(worker.ask_push_pull(0, 1, both(2)));
    (void)worker.reply(worker.ask_next_step(1));
    (void)worker.ask_leave(true, true);
    to_restore_ = host_->wait_for_captured(2);
    ASSERT_TRUE(to_restore_);
    stop();
  }
  run_shard();
  host_->propose(layout_);  // The checkpoint's.
  RawWorker observer = connect(9);
  EXPECT_TRUE(eventually(observer, [](const proto::StatusReply& status) {
    return status.shard().phase() == proto::PHASE_DRAINING;
  }));
  link_up();
  receive(to_message(of_them_, reset(3, 5), 0, 0));
  std::optional<Contribution> last;
  for (std::size_t seen = 0; !last && host_->wait_for_sent(seen + 1); ++seen) {
    const proto::Message message = host_->sent()[seen].message;
    Step clock = 0;
    if (message.kind == Kind::kContribution) last = *to_contribution(message, clock);
  }
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->final);
  EXPECT_EQ(last->base, (AnchorId{1, 3}));
}

// The home's last word ends training for a region that had no part in the end: it was out of reach, or has
// gone back to a checkpoint of before.
TEST_F(ShardWithPeerTest, TheJobsParametersEndTrainingHereToo) {
  RawWorker worker = start();
  receive(to_message(of_them_, reset(1, 9, true), 0, 0));
  (void)worker.reply(worker.ask_push_pull(0, 1, both(2)));
  const auto going_on = worker.reply(worker.ask_next_step(1));
  EXPECT_TRUE(proto::parse_meta<proto::NextStepReply>(going_on)->stop());
}

}  // namespace
}  // namespace isthmus::server
