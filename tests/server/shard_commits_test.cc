#include <cmath>
#include <limits>

#include "tests/server/shard_support.h"

namespace isthmus::server {
namespace {

using proto::Kind;
using std::chrono::seconds;

using ShardCommitsTest = ShardTest;

std::vector<float> of(float value) { return std::vector<float>(4, value); }

// Card BSP: w = 1, eta = .1, g = {.2, .4, .9} -> .95, for all of them.
TEST_F(ShardCommitsTest, BspAnswersEveryoneWithTheMeanOfAll) {
  config_.optimizer.learning_rate = .1f;
  auto workers = train(3);
  const float gradients[] = {.2f, .4f, .9f};
  std::vector<std::uint64_t> asked;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t before = 0; before < i; ++before) EXPECT_FALSE(workers[before].answered(asked[before]));
    asked.push_back(workers[i].ask_push_pull(0, 32, both(gradients[i]), {{0, 0}, {1, 0}}));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Pulled got = pulled_by(workers[i].reply(asked[i]));
    ASSERT_EQ(got.values.size(), 2u);
    for (const auto& [slice, values] : got.values) EXPECT_NEAR(values[0], .95, 1e-6) << slice;
    EXPECT_EQ(got.versions.at(0), 2u);
  }
}

TEST_F(ShardCommitsTest, BspWeighsBySamples) {
  auto workers = train(2, 0);
  (void)workers[0].ask_push_pull(0, 10, both(2));
  const auto asked = workers[1].ask_push_pull(0, 30, both(4), {{0, 0}});
  EXPECT_EQ(pulled_by(workers[1].reply(asked)).values.at(0)[0], -3.5f);
  EXPECT_EQ(workers[0].status().shard().samples(), 40u);
}

TEST_F(ShardCommitsTest, NobodyStartsTheNextStepOfBspAlone) {
  auto workers = train(2);
  const auto first = workers[0].ask_next_step(1);
  EXPECT_FALSE(workers[0].answered(first));
  const auto second = workers[1].ask_next_step(1);
  EXPECT_EQ(workers[0].reply(first).kind, Kind::kNextStepReply);
  EXPECT_EQ(workers[1].reply(second).kind, Kind::kNextStepReply);
}

TEST_F(ShardCommitsTest, ASliceThatAWorkerLeavesOutDoesNotHoldUpTheOthers) {
  auto workers = train(2, 0);
  const auto pushed = workers[0].ask_push_pull(0, 1, both(2), {{1, 0}});
  (void)workers[1].ask_push_pull(0, 1, {{0, of(4)}});
  EXPECT_FALSE(workers[0].answered(pushed));
  (void)workers[1].ask_next_step(1);  // Slice 1 gets nothing more for step 0.
  EXPECT_EQ(pulled_by(workers[0].reply(pushed)).values.at(1)[0], -2.0f);
  EXPECT_EQ(parameter(workers[0]), -3.0f);
}

// Card ASP: two workers computed g = 1 at w = 1: .9 after the first push, .8 after the second.
TEST_F(ShardCommitsTest, AsyncFoldsAtOnce) {
  config_.commit.policy = core::CommitPolicyKind::kAsync;
  config_.optimizer.learning_rate = .1f;
  auto workers = train(2);
  const auto first = workers[0].ask_push_pull(0, 1, both(1), {{0, 0}});
  EXPECT_NEAR(pulled_by(workers[0].reply(first)).values.at(0)[0], .9, 1e-6);
  const auto second = workers[1].ask_push_pull(0, 1, both(1), {{0, 0}});
  EXPECT_NEAR(pulled_by(workers[1].reply(second)).values.at(0)[0], .8, 1e-6);
  const auto status = workers[0].status().shard();
  ASSERT_EQ(status.staleness_size(), 2);  // Two slices each: both computed from version 1.
  EXPECT_EQ(status.staleness(0), 2u);
  EXPECT_EQ(status.staleness(1), 2u);
  EXPECT_EQ(status.commits(), 4u);
  for (Step step = 1; step < 20; ++step)
    EXPECT_EQ(workers[0].reply(workers[0].ask_next_step(step)).kind, Kind::kNextStepReply);
}

// Computed from version 1 when the slice is at 2 and 3: the second counts whole, the third a half.
TEST_F(ShardCommitsTest, AStaleContributionCountsLess) {
  config_.commit = {.policy = core::CommitPolicyKind::kAsync, .least_weight = 0.25};
  config_.optimizer.learning_rate = .5f;
  auto workers = train(6, 0);
  const float expected[] = {-.5f, -1.0f, -1.25f, -1.25f - .5f / 3, -1.375f - .5f / 3, -1.5f - .5f / 3};
  for (std::size_t i = 0; i < 6; ++i) {
    const auto asked = workers[i].ask_push_pull(0, 1, both(1), {{0, 0}});
    EXPECT_NEAR(pulled_by(workers[i].reply(asked)).values.at(0)[0], expected[i], 1e-6) << i;
  }
}

// Card DCASGD through a shard: what a worker pulled last is what its gradient is compensated from.
TEST_F(ShardCommitsTest, DelaysAreCompensated) {
  config_.commit = {.policy = core::CommitPolicyKind::kAsync, .compensation = core::CompensationConfig()};
  config_.optimizer.learning_rate = .1f;
  auto workers = train(2);
  for (RawWorker& worker : workers) (void)worker.reply(worker.ask_push_pull(0, 1, {}, {{0, 0}, {1, 0}}));
  const auto first = workers[0].ask_push_pull(0, 1, both(.5f), {{0, 0}});
  EXPECT_NEAR(pulled_by(workers[0].reply(first)).values.at(0)[0], .95, 1e-6);
  const auto second = workers[1].ask_push_pull(0, 1, both(.5f), {{0, 0}});
  EXPECT_NEAR(pulled_by(workers[1].reply(second)).values.at(0)[0], .90005, 1e-6);
}

// Card SSP, s = 2: {2,0} goes, {3,0} is blocked, {3,1} goes.
TEST_F(ShardCommitsTest, SspHoldsAWorkerBackThatIsTooFarAhead) {
  config_.commit = {.policy = core::CommitPolicyKind::kSsp, .staleness = 2};
  auto workers = train(2);
  for (const Step step : {1, 2})
    EXPECT_EQ(workers[0].reply(workers[0].ask_next_step(step)).kind, Kind::kNextStepReply);
  const auto third = workers[0].ask_next_step(3);
  EXPECT_FALSE(workers[0].answered(third));
  EXPECT_EQ(workers[1].reply(workers[1].ask_next_step(1)).kind, Kind::kNextStepReply);
  EXPECT_EQ(workers[0].reply(third).kind, Kind::kNextStepReply);
}

// The fast worker's steps take 1 s, the slow one's 4 s: 2 ahead, where ssp would hold it, it runs on for as
// long as the slow one's step has left, and waits then.
TEST_F(ShardCommitsTest, DsspLetsTheFastestRunOnWhereItWouldWaitAnyway) {
  config_.commit = {.policy = core::CommitPolicyKind::kDssp, .staleness = 1, .most_staleness = 7};
  auto workers = train(2);
  RawWorker &fast = workers[0], &slow = workers[1];
  const auto goes_on = [](RawWorker& worker, Step step) {
    return worker.reply(worker.ask_next_step(step)).kind == Kind::kNextStepReply;
  };
  advance(seconds(4));
  EXPECT_TRUE(goes_on(slow, 1));
  advance(seconds(3));
  EXPECT_TRUE(goes_on(fast, 1));
  advance(seconds(1));
  EXPECT_TRUE(goes_on(slow, 2));  // The next at 12 s.
  for (const Step step : {2, 3, 4, 5}) {
    EXPECT_TRUE(goes_on(fast, step)) << step;
    advance(seconds(1));
  }
  const auto sixth = fast.ask_next_step(6);  // At 12 s.
  EXPECT_FALSE(fast.answered(sixth));
  EXPECT_TRUE(goes_on(slow, 3));
  EXPECT_TRUE(goes_on(slow, 4));
  EXPECT_FALSE(fast.answered(sixth));
  EXPECT_TRUE(goes_on(slow, 5));
  EXPECT_EQ(fast.reply(sixth).kind, Kind::kNextStepReply);
}

TEST_F(ShardCommitsTest, ASecondContributionToAStepIsAcknowledgedAndNotApplied) {
  for (const auto policy : {core::CommitPolicyKind::kBsp, core::CommitPolicyKind::kAsync}) {
    config_.commit.policy = policy;
    auto workers = train(1, 0);
    for (int i = 0; i < 2; ++i) {
      const auto asked = workers[0].ask_push_pull(0, 5, both(1));
      EXPECT_EQ(workers[0].reply(asked).kind, Kind::kPushPullReply);
    }
    EXPECT_EQ(parameter(workers[0]), -1.0f);
    EXPECT_EQ(workers[0].status().shard().samples(), 5u);
    stop();
  }
}

TEST_F(ShardCommitsTest, TheEndOfALeaseShrinksTheBarrier) {
  auto workers = train(3, 0);
  const auto first = workers[0].ask_push_pull(0, 1, both(2), {{0, 0}});
  const auto second = workers[1].ask_push_pull(0, 1, both(4), {{0, 0}});
  clock_.advance(config_.commit.lease - core::Duration(1));
  EXPECT_FALSE(workers[0].answered(first));
  EXPECT_FALSE(workers[1].answered(second));  // Both have renewed their leases; the third was never heard.
  advance(core::Duration(1));
  EXPECT_EQ(pulled_by(workers[0].reply(first)).values.at(0)[0], -3.0f);
  EXPECT_EQ(pulled_by(workers[1].reply(second)).values.at(0)[0], -3.0f);
  EXPECT_EQ(host_->lines_with("worker 2 was silent for its lease"), 1);
  expect_refused(workers[2].reply(workers[2].ask_push_pull(0, 1, both(1))), proto::REFUSE_NOT_MEMBER,
                 "say hello again");
  // It comes back where the slowest living worker is.
  const std::uint64_t next[] = {workers[0].ask_next_step(1), workers[1].ask_next_step(1)};
  for (std::size_t i : {0, 1}) EXPECT_EQ(workers[i].reply(next[i]).kind, Kind::kNextStepReply);
  RawWorker again = connect(2);
  proto::Hello hello = again.hello_meta(config_, layout_);
  hello.set_incarnation(2);
  EXPECT_EQ(proto::parse_meta<proto::Welcome>(again.say(hello))->start_step(), 1u);
}

TEST_F(ShardCommitsTest, ParametersThatAreNoLongerFiniteFailTheJobByTheTensorsName) {
  auto workers = train(1, 0);
  for (const Step step : {0, 1}) {
    const auto pushed = workers[0].ask_push_pull(step, 1, both(3e38f), {{0, 0}});
    const proto::Message answer = workers[0].reply(pushed);
    if (step == 1)
      expect_refused(answer, proto::REFUSE_FAILED, "tensor 't0' is no longer finite after step 1");
    if (step == 0) (void)workers[0].reply(workers[0].ask_next_step(1));
  }
  EXPECT_NE(host_->wait_for_failure().find("training has diverged"), std::string::npos);
  EXPECT_EQ(workers[0].status().shard().commits(), 4u) << "the status is still told";
}

TEST_F(ShardCommitsTest, AGradientThatIsNotFiniteIsRefusedByNameAndTheOthersGoOn) {
  auto workers = train(2, 0);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    auto gradients = both(1);
    gradients[1][2] = bad;
    const proto::Message answer = workers[1].reply(workers[1].ask_push_pull(0, 1, gradients));
    expect_refused(answer, proto::REFUSE_NOT_FINITE, "worker 1 of region r0, step 0: tensor 't1'");
  }
  const auto status = workers[0].status();
  EXPECT_EQ(status.shard().refused_not_finite(), 2u);
  EXPECT_EQ(status.shard().refused_malformed(), 0u);
  EXPECT_EQ(status.shard().workers(1).refused(), 2u);
  EXPECT_EQ(status.shard().workers(0).refused(), 0u);
  EXPECT_NE(status.last_error().find("worker 1 of region r0"), std::string::npos) << status.last_error();
  EXPECT_EQ(host_->lines_with("worker 1 of region r0"), 1) << "once a second at most";
  // The step goes on without it.
  const auto pushed = workers[0].ask_push_pull(0, 1, both(2), {{0, 0}});
  (void)workers[1].ask_next_step(1);
  EXPECT_EQ(pulled_by(workers[0].reply(pushed)).values.at(0)[0], -2.0f);
}

TEST_F(ShardCommitsTest, RecordsThatAreNoneAreRefusedAndChangeNothing) {
  config_.commit.policy = core::CommitPolicyKind::kAsync;
  auto workers = train(1);
  RawWorker& worker = workers[0];
  const auto push = [&](core::SliceId slice, std::uint32_t codec, std::size_t floats,
                        const std::function<void(proto::PushPull&)>& spoil = {}) {
    proto::PushPull meta;
    meta.set_samples(1);
    proto::Message message;
    // A good record first: it must not be applied either.
    RawWorker::add_record(*meta.add_push(), 0, record_of(of(5)), 1, message);
    meta.add_computed_from(1);
    RawWorker::add_record(*meta.add_push(), slice, record_of(std::vector<float>(floats, 5)), codec, message);
    meta.add_computed_from(1);
    if (spoil) spoil(meta);
    message.kind = Kind::kPushPull;
    message.meta = meta.SerializeAsString();
    expect_refused(worker.reply(worker.ask(std::move(message))), proto::REFUSE_BAD_REQUEST, "");
  };
  push(1, 1, 3);    // Too short.
  push(1, 1, 5);    // Too long.
  push(1, 77, 4);   // No such codec.
  push(1, 257, 4);  // No byte.
  push(1, 5, 4);    // Not what that codec writes.
  push(2, 1, 4);    // No such slice.
  push(1, 1, 4, [](proto::PushPull& meta) { meta.mutable_push(1)->set_bytes(12); });
  push(1, 1, 4, [](proto::PushPull& meta) { meta.mutable_push(1)->set_bytes(~std::uint64_t{0}); });
  push(1, 1, 4, [](proto::PushPull& meta) { meta.mutable_push()->RemoveLast(); });
  push(1, 1, 4, [](proto::PushPull& meta) { meta.clear_computed_from(); });
  for (const float scale : {0.0f, -0.5f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    push(1, 1, 4, [scale](proto::PushPull& meta) {
      meta.add_scale(1.0f);
      meta.add_scale(scale);
    });
  }
  push(1, 1, 4, [](proto::PushPull& meta) { meta.add_scale(0.5f); });  // Of two records.
  push(1, 1, 4, [](proto::PushPull& meta) { meta.add_pull()->set_slice(9); });
  push(1, 1, 4, [](proto::PushPull& meta) { meta.set_samples(0); });
  push(1, 1, 4, [](proto::PushPull& meta) { meta.set_samples((std::uint64_t{1} << 32) + 1); });
  push(1, 1, 4, [](proto::PushPull& meta) { meta.set_step(1); });
  EXPECT_EQ(parameter(worker), 1.0f);
  const auto status = worker.status().shard();
  EXPECT_EQ(status.commits(), 0u);
  EXPECT_EQ(status.samples(), 0u);
  EXPECT_EQ(status.staleness_size(), 0);
  EXPECT_EQ(status.refused_not_finite(), 0u);
  EXPECT_EQ(status.refused_malformed(), 15u);  // The last four are good records, wrongly asked for.
}

}  // namespace
}  // namespace isthmus::server
