#include "server/directory.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/server/server_support.h"

namespace isthmus::server {
namespace {

TEST(DirectoryTest, HomesAreSpreadEvenly) {
  const core::Layout layout = layout_of({4, 4, 4, 4, 4, 4, 4, 4, 4});
  const Directory directory(small_job({{1}, {1}, {1}}), layout);
  ASSERT_EQ(directory.slices(), 9u);
  std::map<std::uint32_t, int> slices_of;
  for (core::SliceId slice = 0; slice < 9; ++slice) ++slices_of[directory.home_of(slice)];
  EXPECT_EQ(slices_of, (std::map<std::uint32_t, int>{{0, 3}, {1, 3}, {2, 3}}));
}

TEST(DirectoryTest, RegionsMayDifferInSize) {
  const core::Layout layout = layout_of({4, 4, 4, 4, 4, 4});
  const Directory directory(small_job({{1}, {2, 1}}), layout);
  std::map<std::uint32_t, int> slices_of;
  for (core::SliceId slice = 0; slice < 6; ++slice) {
    EXPECT_EQ(directory.shard_of(0, slice), 0u);
    EXPECT_EQ(directory.server_of(0, slice), 0u);
    const std::uint32_t shard = directory.shard_of(1, slice);
    ++slices_of[shard];
    EXPECT_EQ(directory.server_of(1, slice), shard < 2 ? 0u : 1u);
  }
  EXPECT_EQ(slices_of, (std::map<std::uint32_t, int>{{0, 2}, {1, 2}, {2, 2}}));
}

TEST(DirectoryTest, ShardsAreCountedOverTheRegionsServers) {
  const Directory directory(small_job({{2, 3, 1}}), layout_of({4}));
  EXPECT_EQ(directory.first_shard(0, 0), 0u);
  EXPECT_EQ(directory.first_shard(0, 1), 2u);
  EXPECT_EQ(directory.first_shard(0, 2), 5u);
}

TEST(DirectoryTest, AMessageMustHoldTheLargestShard) {
  core::JobConfig config = small_job({{2}, {1}});
  const core::Layout layout = layout_of({16384, 16384});
  config.limits.message_bytes = (64 << 10) + 2 * (64 << 10) + 64 * layout.slices().size();
  EXPECT_TRUE(check_message_limit(config, layout).ok());
  --config.limits.message_bytes;
  const Status status = check_message_limit(config, layout);
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("limits.message"), std::string::npos) << status.to_string();
  EXPECT_NE(status.message().find("region r1"), std::string::npos) << status.to_string();
}

TEST(DirectoryTest, OneRegionIsHomeToAll) {
  const Directory directory(small_job({{2}}), layout_of({9, 3}));
  for (core::SliceId slice = 0; slice < directory.slices(); ++slice) EXPECT_EQ(directory.home_of(slice), 0u);
}

}  // namespace
}  // namespace isthmus::server
