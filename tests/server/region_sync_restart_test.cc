// Homes and regions that come back from a checkpoint, or without one.

#include "tests/server/region_sync_support.h"

namespace isthmus::server {
namespace {

class RegionSyncRestartTest : public RegionSyncTest {
 protected:
  // All of a site's slices, as a checkpoint has them.
  std::vector<SavedSlice> save(std::uint32_t region) {
    Regions::Site& site = regions().at(region);
    std::vector<SavedSlice> saved;
    for (std::size_t i = 0; i < site.slices.size(); ++i) {
      saved.push_back(site.slices[i]->save());
      site.sync->save(i, saved.back());
    }
    return saved;
  }
  // The site ends and is there again; its link comes up when told.
  void restart(std::uint32_t region, const std::vector<SavedSlice>& saved) {
    regions().cut(kA, kB);
    regions().restart({region, 0});
    Regions::Site& site = regions().at(region);
    for (std::size_t i = 0; i < saved.size(); ++i) {
      site.slices[i]->restore(saved[i]);
      site.sync->restore(i, saved[i]);
    }
  }
  // What both regions have after everything is told. REQUIRES: the links are up.
  void expect_agreement(float value) {
    for (int i = 0; i < 4; ++i) regions().step(0, 0), regions().step(1, 0), regions().settle();
    EXPECT_NEAR(regions().value(0), value, 1e-5);
    EXPECT_NEAR(regions().value(1), value, 1e-5);
  }
};

TEST_F(RegionSyncRestartTest, AHomeGoesOnFromItsCheckpointAndTakesTheOthersAlong) {
  start(two_regions());
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  const auto saved = save(0);
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  EXPECT_EQ(regions().value(1), 2.0f);
  restart(0, saved);
  EXPECT_TRUE(regions().sync(0).ready());  // It is home to all that it has.
  EXPECT_EQ(regions().value(0), 1.0f);
  regions().connect(kA, kB);
  regions().settle();
  EXPECT_EQ(regions().value(1), 1.0f);  // The second round is undone everywhere, ...
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  expect_agreement(2);  // ... and the next counts once.
}

// The checkpoint is from before the end, its workers are gone, and everybody else is waiting to go.
TEST_F(RegionSyncRestartTest, ARegionThatRestartsAfterTheLastSyncEndsWithTheOthers) {
  start(two_regions());
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  const auto saved = save(1);
  regions().step(0, -2), regions().step(1, -4);
  for (const std::uint32_t region : {0, 1}) regions().drain(region);
  regions().tick(1);
  const Regions::Packet told = regions().packets.back();
  ASSERT_EQ(told.to.region, 0u);
  ASSERT_TRUE(regions().receive(told).ok());
  regions().tick(0);
  ASSERT_EQ(regions().value(0), 1.0f + 3.0f);
  restart(1, saved);
  EXPECT_FALSE(regions().sync(1).all_ended());
  regions().connect(kA, kB);
  regions().settle();
  EXPECT_TRUE(regions().sync(1).all_ended()) << "nobody is left to train with";
  regions().drain(1);
  regions().settle();
  for (const std::uint32_t region : {0, 1}) {
    ASSERT_TRUE(regions().drained(region));
    EXPECT_TRUE(regions().last_sync_without(region).empty()) << region;
  }
  EXPECT_TRUE(regions().same_bits(0, 1));
}

TEST_F(RegionSyncRestartTest, WhatTheHomeHasNotFoldedIsToldAgain) {
  start(two_regions());
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  const auto saved = save(0);
  regions().step(1, -8);
  regions().tick(1);
  ASSERT_EQ(regions().packets.size(), 1u);  // Region 1's contribution is under way, and is lost.
  restart(0, saved);
  regions().connect(kA, kB);
  regions().settle();
  EXPECT_EQ(regions().value(1), 9.0f);
  expect_agreement(9 - 4);  // The mean of 8 and of nothing.
}

TEST_F(RegionSyncRestartTest, AHomesOwnStepsSurviveInItsCheckpoint) {
  start(two_regions());
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  regions().step(0, -4);  // Told to nobody.
  const auto saved = save(0);
  EXPECT_EQ(saved[0].untold_samples, 1u);
  restart(0, saved);
  EXPECT_EQ(regions().value(0), 5.0f);
  regions().connect(kA, kB);
  regions().settle();
  expect_agreement(3);  // The mean of 4 and of nothing.
}

TEST_F(RegionSyncRestartTest, ARegionTakesWhatTheHomeHas) {
  start(two_regions());
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  const auto saved = save(1);
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  restart(1, saved);
  EXPECT_FALSE(regions().sync(1).ready());
  EXPECT_EQ(regions().value(1), 1.0f);
  regions().connect(kA, kB);
  regions().settle();
  EXPECT_TRUE(regions().sync(1).ready());
  EXPECT_EQ(regions().value(1), 2.0f);
  expect_agreement(2);
}

TEST_F(RegionSyncRestartTest, BothComeBack) {
  start(two_regions());
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  const auto home = save(0), region = save(1);
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  restart(0, home);
  restart(1, region);
  regions().connect(kA, kB);
  regions().settle();
  expect_agreement(1);
}

TEST_F(RegionSyncRestartTest, AHomeThatLostItsStateEndsTheJobOfBoth) {
  start(two_regions());
  restart(0, {});
  regions().connect(kA, kB);
  regions().tick(1);
  ASSERT_EQ(regions().packets.size(), 1u);
  const Status lost = regions().receive(regions().packets.front());
  EXPECT_EQ(lost.code(), ErrorCode::kFailed);
  EXPECT_NE(lost.message().find("region r1 goes on with them"), std::string::npos) << lost.to_string();
  ASSERT_EQ(regions().packets.size(), 2u);
  const Status told = regions().receive(regions().packets.back());
  EXPECT_EQ(told.code(), ErrorCode::kFailed);
  EXPECT_NE(told.message().find("region r0, server 0 has restarted without"), std::string::npos)
      << told.to_string();
}

TEST_F(RegionSyncRestartTest, ARegionFromACheckpointTakesNothingFromAHomeThatBeganAnew) {
  start(two_regions());
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  const auto saved = save(1);
  restart(0, {});
  restart(1, saved);
  regions().initialize(0, 0);
  regions().connect(kA, kB);
  regions().tick();
  ASSERT_EQ(regions().packets.size(), 1u);
  const Status status = regions().receive(regions().packets.front());
  EXPECT_EQ(status.code(), ErrorCode::kFailed);
  EXPECT_NE(status.message().find("has begun anew"), std::string::npos) << status.to_string();
}

TEST_F(RegionSyncRestartTest, AHomeMayRestartBeforeItHasTheInitialValues) {
  Regions regions(two_regions(), layout_of({4}));
  regions.connect_all();
  regions.tick();
  regions.cut(kA, kB);
  regions.restart(kA);
  regions.connect(kA, kB);
  regions.initialize(0, 3);
  regions.settle();
  EXPECT_EQ(regions.value(1), 3.0f);
}

TEST_F(RegionSyncRestartTest, AHomeThatRestartsDuringTheLastSyncEndsItAllTheSame) {
  start(two_regions());
  regions().step(0, -1), regions().step(1, -1);
  regions().settle();
  const auto saved = save(0);
  regions().drain(1);
  regions().settle();  // Region 1's last contribution is at the home, and folded.
  restart(0, saved);
  regions().connect(kA, kB);
  regions().settle();
  regions().drain(0);
  regions().settle();
  EXPECT_TRUE(regions().drained(0) && regions().drained(1));
  EXPECT_TRUE(regions().last_sync_without(0).empty());
  EXPECT_TRUE(regions().same_bits(0, 1));
}

}  // namespace
}  // namespace isthmus::server
