#include "server/region_table.h"

#include <gtest/gtest.h>

#include "tests/server/server_support.h"

namespace isthmus::server {
namespace {

using std::chrono::seconds;

constexpr core::TimePoint kStart(seconds(1000));
constexpr core::Duration kGrace = seconds(30);

void up(RegionTable& table, wan::Peer peer) { table.find(peer)->up = true; }
void down(RegionTable& table, wan::Peer peer, core::TimePoint now) {
  table.find(peer)->down_since = now.time_since_epoch().count();
  table.find(peer)->up = false;
}

// Region 0 looks at region 1 with two servers and region 2 with one.
class RegionTableTest : public ::testing::Test {
 protected:
  core::JobConfig config_ = small_job({{2}, {1, 1}, {1}});
  RegionTable table_{config_, 0, 2, kStart};
};

TEST_F(RegionTableTest, HoldsEveryServerOfTheOtherRegions) {
  std::vector<wan::Peer> peers;
  for (const auto& entry : table_.peers()) peers.push_back(entry->peer);
  EXPECT_EQ(peers, (std::vector<wan::Peer>{{1, 0}, {1, 1}, {2, 0}}));
  EXPECT_EQ(table_.find({0, 0}), nullptr);
  EXPECT_EQ(table_.find({1, 2}), nullptr);
  EXPECT_EQ(table_.find({1, 1}), table_.peers()[1].get());
}

TEST_F(RegionTableTest, TheOwnClockIsThatOfTheSlowestShard) {
  EXPECT_FALSE(table_.set_own_clock(0, 0));
  EXPECT_TRUE(table_.set_own_clock(0, 7));
  EXPECT_EQ(table_.own_clock(), 0u);
  EXPECT_TRUE(table_.set_own_clock(1, 5));
  EXPECT_FALSE(table_.set_own_clock(1, 5));
  EXPECT_EQ(table_.own_clock(), 5u);
  table_.set_own_clock(0, wan::kFinishedClock);
  EXPECT_EQ(table_.own_clock(), 5u);
  table_.set_own_clock(1, wan::kFinishedClock);
  EXPECT_EQ(table_.own_clock(), wan::kFinishedClock);
}

TEST_F(RegionTableTest, ClocksOfOthersNeverGoBack) {
  for (const Step clock : {3, 9, 4, 0}) table_.advance_clock({2, 0}, clock);
  EXPECT_EQ(table_.find({2, 0})->clock.load(), 9u);
  table_.advance_clock({2, 0}, wan::kFinishedClock);
  table_.advance_clock({2, 0}, 100);  // Was sent before the region ended.
  EXPECT_EQ(table_.find({2, 0})->clock.load(), wan::kFinishedClock);
  table_.advance_clock({7, 7}, 1);  // Nobody.
}

TEST_F(RegionTableTest, TheSlowestOtherCountsEveryServerThatHasNotFinished) {
  EXPECT_EQ(table_.slowest_other(), 0u);
  table_.advance_clock({1, 0}, 10);
  table_.advance_clock({1, 1}, 8);
  table_.advance_clock({2, 0}, 20);
  EXPECT_EQ(table_.slowest_other(), 8u);
  table_.advance_clock({1, 1}, wan::kFinishedClock);
  EXPECT_EQ(table_.slowest_other(), 10u);
  EXPECT_FALSE(table_.region_finished(1));
  table_.advance_clock({1, 0}, wan::kFinishedClock);
  EXPECT_TRUE(table_.region_finished(1));
  EXPECT_EQ(table_.slowest_other(), 20u);
  table_.advance_clock({2, 0}, wan::kFinishedClock);
  EXPECT_EQ(table_.slowest_other(), wan::kFinishedClock);
}

TEST_F(RegionTableTest, ARegionIsUpWhenAllItsServersAre) {
  EXPECT_FALSE(table_.region_up(1));
  up(table_, {1, 0});
  EXPECT_FALSE(table_.region_up(1));
  up(table_, {1, 1});
  EXPECT_TRUE(table_.region_up(1));
  EXPECT_FALSE(table_.region_up(2));
  down(table_, {1, 0}, kStart);
  EXPECT_FALSE(table_.region_up(1));
  EXPECT_TRUE(table_.region_up(0)) << "our own needs no link";
}

TEST_F(RegionTableTest, ARegionIsLostWhenAnyOfItsServersIsDownForTheGrace) {
  EXPECT_FALSE(table_.region_lost(1, kStart + kGrace - core::Duration(1), kGrace));
  EXPECT_TRUE(table_.region_lost(1, kStart + kGrace, kGrace)) << "it never came";
  up(table_, {1, 0});
  EXPECT_TRUE(table_.region_lost(1, kStart + kGrace, kGrace)) << "one server of two is not enough";
  up(table_, {1, 1});
  EXPECT_FALSE(table_.region_lost(1, kStart + kGrace, kGrace));

  const core::TimePoint later = kStart + seconds(500);
  down(table_, {1, 1}, later);
  EXPECT_FALSE(table_.region_lost(1, later + seconds(29), kGrace)) << "the grace starts anew";
  EXPECT_TRUE(table_.region_lost(1, later + seconds(30), kGrace));
  up(table_, {1, 1});
  EXPECT_FALSE(table_.region_lost(1, later + seconds(30), kGrace));
  EXPECT_FALSE(table_.region_lost(0, later + seconds(300), kGrace)) << "our own is never lost";
}

TEST(RegionTableAloneTest, OneRegionWaitsForNobody) {
  RegionTable table(small_job({{1}}), 0, 1, kStart);
  EXPECT_EQ(table.slowest_other(), wan::kFinishedClock);
  EXPECT_TRUE(table.peers().empty());
}

}  // namespace
}  // namespace isthmus::server
