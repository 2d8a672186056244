#include "server/region_sync.h"

#include <cmath>
#include <limits>

#include "server/wan_messages.h"
#include "tests/server/region_sync_support.h"

namespace isthmus::server {
namespace {

using proto::Kind;
using std::chrono::seconds;

core::JobConfig lockstep() {
  core::JobConfig config = two_regions();
  config.sync.strategy = core::SyncStrategy::kLockstep;
  return config;
}

TEST_F(RegionSyncTest, TheHomesInitialValuesWinEverywhere) {
  Regions regions(two_regions(), layout_of({4, 4}));
  const core::SliceId of_a = regions.directory().home_of(0) == 0 ? 0 : 1;
  regions.connect_all();
  regions.initialize(0, 10);
  regions.settle();
  EXPECT_FALSE(regions.sync(0).ready());
  EXPECT_FALSE(regions.sync(1).ready());
  regions.initialize(1, 20);
  regions.settle();
  for (const std::uint32_t region : {0, 1}) {
    EXPECT_TRUE(regions.sync(region).ready());
    EXPECT_EQ(regions.value(region, of_a), 10.0f);
    EXPECT_EQ(regions.value(region, 1 - of_a), 20.0f);
  }
}

// Dense values over a slow link are dear: they must not travel twice.
TEST_F(RegionSyncTest, InitialValuesTravelOnceWhateverComesFirst) {
  for (const bool link_first : {true, false}) {
    Regions regions(two_regions(), layout_of({4}));
    if (link_first) {
      regions.connect(kA, kB);
      regions.tick();
    }
    regions.initialize(0, 1);
    if (!link_first) regions.connect(kA, kB);
    regions.tick();
    ASSERT_EQ(regions.packets.size(), 1u) << link_first;
    EXPECT_EQ(regions.packets.front().message.kind, Kind::kReset);
    regions.settle();
    EXPECT_TRUE(regions.sync(1).ready());
  }
}

// (10 * 2 + 30 * 4) / 40 = 3.5
TEST_F(RegionSyncTest, RegionsMeetAtTheMeanWeightedBySamples) {
  start(two_regions());
  regions().step(0, 2, 10);
  regions().step(1, 4, 30);
  regions().settle();
  EXPECT_EQ(regions().value(0), -3.5f);
  EXPECT_EQ(regions().value(1), -3.5f);
  EXPECT_EQ(regions().sync(1).anchor(0)[0], -3.5f);
  EXPECT_EQ(regions().sync(0).counters().folded, 2u);
  EXPECT_EQ(regions().sync(1).counters().newest_round, 1u);
  EXPECT_EQ(regions().sync(1).untold_squared(), 0.0);
}

TEST_F(RegionSyncTest, SyncsEveryNStepsOfTheSlowestWorker) {
  core::JobConfig config = two_regions();
  config.sync.every_steps = 3;
  start(config);
  for (int sync = 0; sync < 3; ++sync) {
    for (int step = 0; step < 2; ++step) {
      regions().step(1, 1);
      regions().tick();
      EXPECT_TRUE(regions().packets.empty());
    }
    EXPECT_EQ(regions().sync(1).untold_squared(), 4 * 2.0 * 2.0);
    regions().step(1, 1);
    regions().tick();
    EXPECT_EQ(regions().packets.size(), 1u);
    regions().now += seconds(5);  // Past the deadline: the home waits no longer for region 0.
    regions().settle();
    regions().now += seconds(5);
    regions().settle();
  }
  EXPECT_EQ(regions().value(0), -9.0f);
}

TEST_F(RegionSyncTest, SyncsByTimeToo) {
  core::JobConfig config = two_regions();
  config.sync.every_steps = 0;
  config.sync.every_time = seconds(7);
  config.sync.deadline = seconds(1);
  start(config);
  EXPECT_EQ(regions().sync(1).next_deadline(), std::nullopt) << "nothing is new";
  regions().step(1, 1);
  regions().settle();  // The first one; the period runs from here.
  const core::TimePoint last = regions().now;
  regions().now += seconds(1);
  regions().settle();
  ASSERT_EQ(regions().value(0), -1.0f);
  regions().step(1, 1);
  EXPECT_EQ(regions().sync(1).next_deadline(), last + seconds(7));
  regions().now = last + seconds(7) - core::Duration(1);
  regions().tick();
  EXPECT_TRUE(regions().packets.empty());
  regions().now = last + seconds(7);
  regions().tick();
  EXPECT_EQ(regions().packets.size(), 1u);
}

TEST_F(RegionSyncTest, TrainingGoesOnDuringASync) {
  start(two_regions());
  regions().step(1, 4);
  regions().tick(1);
  regions().step(1, 1);  // While the first step is on its way.
  regions().step(0, 2);
  regions().settle();
  // Round 1 is the mean of 2 and 4. What region 1 did meanwhile survives it.
  EXPECT_EQ(regions().value(0), -3.0f);
  EXPECT_EQ(regions().value(1), -4.0f);
}

TEST_F(RegionSyncTest, ARoundClosesWithoutTheLateAfterTheDeadline) {
  start(two_regions());
  regions().step(1, 1);
  regions().settle();
  EXPECT_EQ(regions().sync(0).next_deadline(), regions().now + seconds(5));
  regions().now += seconds(5) - core::Duration(1);
  regions().settle();
  EXPECT_EQ(regions().value(0), 0.0f);
  regions().now += core::Duration(1);
  regions().settle();
  EXPECT_EQ(regions().value(0), -1.0f);
  EXPECT_EQ(regions().sync(0).next_deadline(), std::nullopt);
  // The late one joins the next round.
  regions().step(0, 4);
  regions().now += seconds(10);
  regions().settle();
  regions().now += seconds(10);
  regions().settle();
  EXPECT_EQ(regions().value(0), -5.0f);
  EXPECT_TRUE(regions().same_bits(0, 1));
}

TEST_F(RegionSyncTest, ARoundDoesNotWaitForARegionThatIsDown) {
  start(small_job({{1}, {1}, {1}}));
  regions().cut(kA, kC);
  regions().step(0, 2);
  regions().step(1, 4);
  regions().settle();
  EXPECT_EQ(regions().value(0), -3.0f);
  EXPECT_EQ(regions().value(1), -3.0f);
  EXPECT_EQ(regions().value(2), 0.0f);
  regions().connect(kA, kC);
  regions().settle();
  EXPECT_EQ(regions().value(2), -3.0f);
}

TEST_F(RegionSyncTest, AContributionLostWithItsLinkIsSentAgain) {
  start(two_regions());
  regions().step(1, 4);
  regions().tick();
  ASSERT_EQ(regions().packets.size(), 1u);
  regions().cut(kA, kB);
  regions().step(0, 2);
  regions().settle();
  EXPECT_EQ(regions().value(0), -2.0f);
  regions().connect(kA, kB);
  regions().now += seconds(5);
  regions().settle();
  regions().now += seconds(5);
  regions().settle();
  EXPECT_EQ(regions().value(0), -6.0f);
  EXPECT_EQ(regions().value(1), -6.0f);
  EXPECT_EQ(regions().sync(0).counters().folded, 2u);
  EXPECT_EQ(regions().sync(0).counters().duplicates, 0u);
}

TEST_F(RegionSyncTest, AnAnswerLostWithItsLinkIsSentAgainAndNothingIsFoldedTwice) {
  start(two_regions());
  regions().step(0, 2);
  regions().step(1, 4);
  regions().tick();
  const auto contribution = regions().packets.front();
  regions().packets.pop_front();
  ASSERT_TRUE(regions().receive(contribution).ok());
  ASSERT_EQ(regions().packets.size(), 1u);
  ASSERT_EQ(regions().packets.front().message.kind, Kind::kGlobalDelta);
  regions().cut(kA, kB);
  EXPECT_EQ(regions().value(1), -4.0f);
  regions().connect(kA, kB);
  regions().settle();
  EXPECT_EQ(regions().value(1), -3.0f);
  EXPECT_EQ(regions().value(0), -3.0f);
  EXPECT_EQ(regions().sync(0).counters().folded, 2u);
  EXPECT_EQ(regions().sync(0).counters().duplicates, 1u);
}

TEST_F(RegionSyncTest, TheHardBoundHaltsTheFasterRegionUntilTheOtherFollows) {
  core::JobConfig config = two_regions();
  config.sync.hard_staleness = 4;
  start(config);
  EXPECT_FALSE(regions().sync(0).halted(3));
  EXPECT_TRUE(regions().sync(0).halted(4));
  EXPECT_FALSE(regions().sync(1).halted(0));
  regions().step(1, 1);  // Its contribution carries the clock.
  regions().settle();
  EXPECT_FALSE(regions().sync(0).halted(4));
  EXPECT_TRUE(regions().sync(0).halted(5));
  // A lost link lifts no bound; the end of the other's training does.
  regions().cut(kA, kB);
  EXPECT_TRUE(regions().sync(0).halted(5));
  regions().at(0).table.advance_clock(kB, wan::kFinishedClock);
  EXPECT_FALSE(regions().sync(0).halted(5000));
}

TEST_F(RegionSyncTest, ABoundOfContinueHaltsNobody) {
  core::JobConfig config = two_regions();
  config.sync.hard_staleness = 4;
  config.sync.then = core::HardBoundAction::kContinue;
  start(config);
  EXPECT_FALSE(regions().sync(0).halted(1000));
}

TEST_F(RegionSyncTest, AnAbsurdClockOfAPeerHaltsNobody) {
  start(two_regions());
  regions().at(0).table.advance_clock(kB, wan::kFinishedClock - 1);
  EXPECT_FALSE(regions().sync(0).halted(1000));
}

TEST_F(RegionSyncTest, StalenessIsCountedInStepsAheadOfTheSlowestRegion) {
  start(two_regions());
  for (int i = 0; i < 4; ++i) regions().step(0, 1);
  regions().step(1, 1);
  regions().at(0).table.advance_clock(kB, 1);
  regions().settle();
  EXPECT_EQ(regions().sync(0).counters().staleness[3], 1u);
}

TEST_F(RegionSyncTest, LockstepSettlesOnceAllRegionsHaveSpoken) {
  start(lockstep());
  EXPECT_TRUE(regions().sync(0).settled(0));
  regions().step(0, 2);
  EXPECT_FALSE(regions().sync(0).settled(0));
  regions().settle();
  EXPECT_FALSE(regions().sync(0).settled(0));
  EXPECT_TRUE(regions().sync(1).settled(0));
  regions().step(1, 4);
  regions().settle();
  for (const std::uint32_t region : {0, 1}) {
    EXPECT_TRUE(regions().sync(region).settled(0));
    EXPECT_EQ(regions().value(region), -3.0f);
  }
}

// However late: and without a deadline in the past that would keep a shard awake.
TEST_F(RegionSyncTest, LockstepWaitsWithoutADeadline) {
  start(lockstep());
  regions().step(0, 2);
  regions().settle();
  regions().now += std::chrono::hours(1);
  regions().settle();
  EXPECT_FALSE(regions().sync(0).settled(0));
  EXPECT_EQ(regions().sync(0).next_deadline(), std::nullopt);
}

TEST_F(RegionSyncTest, LockstepGoesOnWithoutARegionThatIsDown) {
  start(lockstep());
  regions().cut(kA, kB);
  regions().step(0, 2);
  regions().step(1, 4);
  regions().settle();
  EXPECT_TRUE(regions().sync(0).settled(0));
  EXPECT_FALSE(regions().sync(1).settled(0)) << "its slice's home does not answer";
  regions().connect(kA, kB);
  regions().step(0, 1);
  regions().settle();
  EXPECT_TRUE(regions().sync(1).settled(0));
  EXPECT_TRUE(regions().same_bits(0, 1));
}

TEST_F(RegionSyncTest, OtherStrategiesNeverWait) {
  start(two_regions());
  regions().step(0, 2);
  regions().settle();
  EXPECT_TRUE(regions().sync(0).settled(0));
}

TEST_F(RegionSyncTest, ARegionMayHaveSeveralServers) {
  start(small_job({{1, 1}, {1}}), layout_of({4, 4, 4, 4}));
  EXPECT_EQ(regions().at(0, 0).slices.size(), 2u);
  EXPECT_EQ(regions().at(0, 1).slices.size(), 2u);
  regions().step(0, 2);
  regions().step(1, 4);
  regions().settle();
  for (core::SliceId slice = 0; slice < 4; ++slice) {
    EXPECT_EQ(regions().value(0, slice), -3.0f) << slice;
    EXPECT_EQ(regions().value(1, slice), -3.0f) << slice;
  }
  for (const std::uint32_t region : {0, 1}) regions().drain(region);
  regions().settle();
  EXPECT_TRUE(regions().drained(0));
  EXPECT_TRUE(regions().drained(1));
}

TEST_F(RegionSyncTest, AnAnchorThatDiffersIsFoundByItsChecksumAndHealed) {
  start(two_regions());
  regions().step(0, 2);
  regions().step(1, 4);
  regions().settle();
  const std::vector<float> zeros(4);
  const AnchorId base = regions().sync(1).anchor_id(0);
  const GlobalDelta wrong{
      base, {base.epoch, base.round + 1}, {}, 123, 1, core::copy_bytes(std::as_bytes(std::span(zeros)))};
  ASSERT_TRUE(regions().receive({kA, kB, to_message(0, wrong, 1, 0)}).ok());
  ASSERT_EQ(regions().packets.size(), 1u);
  EXPECT_EQ(regions().packets.front().message.kind, Kind::kResetRequest);
  regions().settle();
  EXPECT_EQ(regions().sync(1).counters().checksum_mismatches, 1u);
  EXPECT_EQ(regions().sync(1).counters().resets, 1u);
  EXPECT_EQ(regions().sync(0).counters().resets, 1u);
  EXPECT_EQ(regions().value(1), -3.0f);
  regions().step(1, 1);
  regions().step(0, 1);
  regions().settle();
  EXPECT_EQ(regions().value(0), -4.0f);
  EXPECT_TRUE(regions().same_bits(0, 1));
}

TEST_F(RegionSyncTest, WhatAPeerMayNotSayIsRefusedAndChangesNothing) {
  start(small_job({{1, 1}, {1}, {1}}), layout_of({4, 4, 4, 4, 4, 4}));
  const Directory& directory = regions().directory();
  const auto slice_where = [&](auto&& wanted) {
    core::SliceId slice = 0;
    while (!wanted(slice)) ++slice;
    return slice;
  };
  const auto refused = [&](wan::Peer from, wan::Peer to, const proto::Message& message) {
    const Status status = regions().receive({from, to, message});
    EXPECT_EQ(status.code(), ErrorCode::kProtocol) << status.to_string();
    EXPECT_TRUE(regions().packets.empty());
    for (core::SliceId slice = 0; slice < directory.slices(); ++slice) {
      for (const std::uint32_t region : {0, 1, 2}) EXPECT_EQ(regions().value(region, slice), 0.0f);
    }
  };
  const std::vector<float> ones(4, 1.0f);
  const core::SharedBytes record = core::copy_bytes(std::as_bytes(std::span(ones)));
  const Contribution contribution{{200, 1}, {1, 0}, 1, false, 1, record};
  const Reset reset{{1, 7}, {}, false, false, record};

  const core::SliceId of_b = slice_where([&](core::SliceId s) { return directory.home_of(s) == 1; });
  const core::SliceId of_c = slice_where([&](core::SliceId s) { return directory.home_of(s) == 2; });
  refused(kB, kC, to_message(99, contribution, 0));                // No such slice.
  refused(kB, kC, to_message(of_b, contribution, 0));              // Not its home.
  refused(kC, kB, to_message(of_c, GlobalDeltaAck{{1, 0}, 300}));  // Not its home either.
  refused(kA, kC, to_message(of_b, reset, 2, 0));                  // Not from its home.
  refused(kB, kC, {Kind::kLinkHeartbeat, of_b, {}, {}});           // Nothing about a slice.
  refused(kB, kC, {Kind::kGlobalDelta, of_b, "\xff\xff", {}});     // No meta.
  refused(kB, kC, {Kind::kGlobalDelta, std::uint64_t{1} << 32 | of_b, {}, {}});
  // The other server of the region holds the slice.
  const core::SliceId of_a1 = slice_where([&](core::SliceId s) { return directory.server_of(0, s) == 1; });
  refused(kA, kC, to_message(of_a1, contribution, 0));
}

TEST_F(RegionSyncTest, ARecordThatIsNoneIsRefusedAndChangesNothing) {
  start(two_regions());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& values : {std::vector<float>{1, 2, 3}, std::vector<float>{1, 2, nan, 4}}) {
    const core::SharedBytes record = core::copy_bytes(std::as_bytes(std::span(values)));
    const Contribution up{{200, 1}, {1, 0}, 1, false, 1, record};
    EXPECT_FALSE(regions().receive({kB, kA, to_message(0, up, 50)}).ok());
    const AnchorId base = regions().sync(1).anchor_id(0);
    const GlobalDelta down{base, {1, base.round + 1}, {}, {}, 1, record};
    EXPECT_FALSE(regions().receive({kA, kB, to_message(0, down, 1, 50)}).ok());
  }
  EXPECT_EQ(regions().at(0).table.find(kB)->clock.load(), 0u);
  regions().step(0, 2);
  regions().step(1, 4);
  regions().settle();
  EXPECT_EQ(regions().value(0), -3.0f);
  EXPECT_TRUE(regions().same_bits(0, 1));
}

}  // namespace
}  // namespace isthmus::server
