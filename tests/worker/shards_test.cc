#include "worker/shards.h"

#include <gtest/gtest.h>

namespace isthmus::worker {
namespace {

ClientConfig good() {
  ClientConfig config;
  config.job = "job";
  config.region = "here";
  config.servers = {{"10.0.0.1", 7100, 2}, {"::1", 7200, 1}};
  return config;
}

TEST(ShardsTest, AreNumberedOverAllServers) {
  ASSERT_TRUE(check(good()).ok());
  const auto shards = shards_of(good());
  ASSERT_EQ(shards.size(), 3u);
  EXPECT_EQ(shards[0].name, "shard 0 at 10.0.0.1:7100");
  EXPECT_EQ(shards[1].name, "shard 1 at 10.0.0.1:7101");
  EXPECT_EQ(shards[1].address, (core::Address{"10.0.0.1", 7101}));
  EXPECT_EQ(shards[2].name, "shard 2 at [::1]:7200");
}

TEST(ShardsTest, ChecksTheConfig) {
  const auto code = [](auto change) {
    ClientConfig config = good();
    change(config);
    return check(config).code();
  };
  EXPECT_EQ(code([](auto& c) { c.servers[0] = {"h", 65535, 1}; }), ErrorCode::kOk);
  for (auto bad :
       {+[](ClientConfig& c) { c.job.clear(); }, +[](ClientConfig& c) { c.region.clear(); },
        +[](ClientConfig& c) { c.servers.clear(); }, +[](ClientConfig& c) { c.servers[0].host = ""; },
        +[](ClientConfig& c) { c.servers[0].shards = 0; }, +[](ClientConfig& c) { c.servers[0].port = 0; },
        +[](ClientConfig& c) {
          c.servers[0] = {"h", 65535, 2};
        },
        +[](ClientConfig& c) { c.servers[0].shards = 4294967295u; }, +[](ClientConfig& c) { c.timeout = {}; },
        +[](ClientConfig& c) { c.barrier_timeout = {}; }})
    EXPECT_EQ(code(bad), ErrorCode::kInvalidArgument);
}

TEST(ShardsTest, ALayoutIsSpreadAsTheServersSpreadIt) {
  const core::Layout layout = *core::Layout::create({{"a", {10}}, {"b", {3}}, {"c", {4}}}, 5);
  const ShardedLayout sharded(layout, 2);
  const std::vector<std::uint32_t> expected = core::assign_shards(layout, 2);
  for (const core::Slice& slice : layout.slices()) EXPECT_EQ(sharded.shard_of(slice.id), expected[slice.id]);
  EXPECT_EQ(sharded.shards(), 2u);
  EXPECT_EQ(sharded.most_elements(), 9u);  // 5 + 4 and 5 + 3
}

}  // namespace
}  // namespace isthmus::worker
