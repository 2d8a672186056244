// The last sync, and what ends a job: regions that are lost, that restart, that overflow.

#include <cmath>

#include "tests/server/region_sync_support.h"

namespace isthmus::server {
namespace {

using std::chrono::seconds;
using RegionSyncDrainTest = RegionSyncTest;

float gradient(std::uint32_t region, int step, core::SliceId slice, std::size_t element) {
  const auto mixed = region * 101 + static_cast<unsigned>(step) * 37 + slice * 17 + element * 29;
  return (static_cast<float>(mixed % 97) - 48.0f) / 64.0f;
}

// Lossy syncs, then the last one: everybody's steps are in it once, and the regions are the same to the bit.
TEST_F(RegionSyncDrainTest, TheLastSyncLeavesAllRegionsWithTheSameParameters) {
  core::JobConfig config = small_job({{1}, {1}, {1}});
  config.compression.wan = {core::CodecKind::kTopk, 0.1};
  config.compression.dense_below_elements = 1;
  start(config, layout_of({130, 70, 1, 64, 200}, 64));
  constexpr int kSteps = 12;
  for (int step = 0; step < kSteps; ++step) {
    for (const std::uint32_t region : {0, 1, 2}) {
      regions().step(region,
                     [&](core::SliceId slice, std::size_t i) { return gradient(region, step, slice, i); });
    }
    regions().settle();
  }
  EXPECT_FALSE(regions().same_bits(0, 1)) << "the codec loses, or this test shows nothing";
  for (const std::uint32_t region : {2, 0, 1}) {
    EXPECT_FALSE(regions().drained(region));
    regions().drain(region);
    regions().settle();
  }
  for (const std::uint32_t region : {0, 1, 2}) EXPECT_TRUE(regions().drained(region)) << region;
  EXPECT_TRUE(regions().same_bits(0, 1));
  EXPECT_TRUE(regions().same_bits(0, 2));
  for (core::SliceId slice = 0; slice < regions().directory().slices(); ++slice) {
    const auto values = regions().parameters(0, slice);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double sum = 0;
      for (int step = 0; step < kSteps; ++step)
        for (const std::uint32_t region : {0, 1, 2}) sum += gradient(region, step, slice, i);
      ASSERT_NEAR(values[i], -sum / 3, 1e-5) << "slice " << slice << ", element " << i;
    }
  }
}

TEST_F(RegionSyncDrainTest, ALinkLostDuringTheLastSyncCostsNothing) {
  start(two_regions(), layout_of({4, 4}));
  regions().step(0, 2);
  regions().step(1, 4);
  for (const std::uint32_t region : {0, 1}) regions().drain(region);
  regions().cut(kA, kB);
  regions().settle();
  EXPECT_FALSE(regions().drained(0));
  EXPECT_FALSE(regions().drained(1));
  regions().connect(kA, kB);
  regions().settle();
  EXPECT_TRUE(regions().drained(0));
  EXPECT_TRUE(regions().drained(1));
  EXPECT_TRUE(regions().same_bits(0, 1));
}

// Nobody waits for ever for a region that is gone; when it comes back, it ends where the others did.
TEST_F(RegionSyncDrainTest, TheLastSyncDoesWithoutARegionThatIsLost) {
  core::JobConfig config = small_job({{1}, {1}, {1}});
  config.limits.operation_timeout = seconds(30);
  start(config, layout_of({4, 4, 4}));
  for (const std::uint32_t region : {0, 1, 2}) regions().step(region, static_cast<float>(region));
  regions().cut(kA, kC);
  regions().cut(kB, kC);
  for (const std::uint32_t region : {0, 1}) regions().drain(region);
  regions().now += seconds(30) - core::Duration(1);
  regions().settle();
  EXPECT_FALSE(regions().drained(0));
  regions().now += core::Duration(1);
  regions().settle();
  ASSERT_TRUE(regions().drained(0));
  ASSERT_TRUE(regions().drained(1));
  const std::set<std::uint32_t> lost = {2};
  EXPECT_EQ(regions().last_sync_without(0), lost);
  EXPECT_EQ(regions().last_sync_without(1), lost);
  for (core::SliceId slice = 0; slice < 3; ++slice) {
    if (regions().directory().home_of(slice) == 2) continue;
    EXPECT_EQ(regions().value(0, slice), -0.5f);
    EXPECT_EQ(regions().value(1, slice), -0.5f);
  }

  regions().connect(kA, kC);
  regions().connect(kB, kC);
  regions().settle();
  EXPECT_TRUE(regions().sync(2).all_ended());
  regions().drain(2);
  regions().settle();
  ASSERT_TRUE(regions().drained(2));
  EXPECT_EQ(regions().last_sync_without(2), lost) << "what it had to tell came too late";
  EXPECT_TRUE(regions().same_bits(0, 1));
  EXPECT_TRUE(regions().same_bits(0, 2));
}

TEST_F(RegionSyncDrainTest, ARegionWhoseValuesOverflowedDoesNotKeepTheJobFromEnding) {
  start(two_regions());
  regions().step(1, -3e38f);
  regions().step(1, -3e38f);
  ASSERT_TRUE(std::isinf(regions().value(1)));
  regions().step(0, 2);
  regions().settle();
  for (const std::uint32_t region : {0, 1}) regions().drain(region);
  regions().settle();
  EXPECT_TRUE(regions().drained(0));
  EXPECT_TRUE(regions().drained(1));
  EXPECT_EQ(regions().value(0), -1.0f) << "the mean of what region 0 did and nothing";
  EXPECT_TRUE(regions().same_bits(0, 1));
}

}  // namespace
}  // namespace isthmus::server
