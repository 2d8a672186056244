#include "core/config_check.h"

#include <gtest/gtest.h>

#include "core/config_file.h"
#include "tests/core/config_text.h"

namespace isthmus::core {
namespace {

using namespace std::chrono_literals;

JobConfig good() {
  Result<JobConfig> config = parse_config(good_config(), "f");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : JobConfig();
}

// The keys that are wrong, one after the other.
std::string keys_of(const JobConfig& config) {
  std::string keys;
  for (const ConfigProblem& problem : find_problems(config)) keys += problem.key + " ";
  return keys;
}

void set_lan(ServerConfig& server, std::string host, std::uint16_t port) {
  server.lan = server.lan_bind = Address{std::move(host), port};
}

TEST(ConfigCheckTest, AGoodConfigHasNoProblem) { EXPECT_EQ(keys_of(good()), ""); }

TEST(ConfigCheckTest, RegionNamesAreUnique) {
  JobConfig config = good();
  config.regions[1].name = "frankfurt";
  EXPECT_EQ(keys_of(config), "regions[1].name ");
}

TEST(ConfigCheckTest, AShardTakesAPortOfItsOwn) {
  JobConfig config = good();
  set_lan(config.regions[1].servers[0], "127.0.0.1", 7101);  // The second shard of frankfurt.
  ASSERT_EQ(keys_of(config), "regions[1].servers[0].lan ");
  EXPECT_EQ(find_problems(config)[0].message,
            "ports 7101 to 7102 of 127.0.0.1 collide with regions[0].servers[0].lan (7100 to 7101); a server "
            "takes one "
            "port a shard, choose others");
  set_lan(config.regions[1].servers[0], "127.0.0.1", 7102);
  EXPECT_EQ(keys_of(config), "");
  set_lan(config.regions[1].servers[0], "localhost", 7199);  // Its second shard would be frankfurt's link.
  EXPECT_EQ(keys_of(config), "regions[1].servers[0].lan ");
  set_lan(config.regions[1].servers[0], "127.0.0.2", 7199);
  EXPECT_EQ(keys_of(config), "");
}

TEST(ConfigCheckTest, OneProcessCannotBindAPortTwice) {
  JobConfig config = good();
  ServerConfig& server = config.regions[0].servers[0];
  server.lan = {"lan.example", 7100};
  server.wan = {"wan.example", 7101};
  server.lan_bind = {"0.0.0.0", 7100};
  server.wan_bind = {"0.0.0.0", 7101};
  EXPECT_EQ(keys_of(config), "regions[0].servers[0].wan_bind ");
  server.wan_bind.port = 7102;
  EXPECT_EQ(keys_of(config), "");
}

TEST(ConfigCheckTest, TwoMachinesMayBindTheSamePort) {
  JobConfig config = good();
  for (RegionConfig& region : config.regions) {
    ServerConfig& server = region.servers[0];
    server.lan = {region.name, 7100};
    server.wan = {region.name, 7200};
    server.lan_bind = {"0.0.0.0", 7100};
    server.wan_bind = {"0.0.0.0", 7200};
  }
  EXPECT_EQ(keys_of(config), "");
}

TEST(ConfigCheckTest, PortsEndAt65535) {
  JobConfig config = good();
  set_lan(config.regions[0].servers[0], "127.0.0.1", 65535);
  EXPECT_EQ(keys_of(config), "regions[0].servers[0].lan regions[0].servers[0].lan_bind ");
  config.regions[0].servers[0].shards = 1;
  EXPECT_EQ(keys_of(config), "");
}

TEST(ConfigCheckTest, AWildcardCanBeBoundButNotAdvertised) {
  JobConfig config = good();
  config.regions[0].servers[0].lan_bind.host = "0.0.0.0";
  EXPECT_EQ(keys_of(config), "");
  config.regions[0].servers[0].lan.host = "0.0.0.0";
  EXPECT_EQ(keys_of(config), "regions[0].servers[0].lan ");
}

TEST(ConfigCheckTest, OnlyOneRegionNeedsNoWan) {
  JobConfig config = good();
  config.regions[0].servers[0].wan = config.regions[0].servers[0].wan_bind = {};
  EXPECT_EQ(keys_of(config), "regions[0].servers[0].wan ");
  config.regions.pop_back();
  EXPECT_EQ(keys_of(config), "");
}

TEST(ConfigCheckTest, TheHardBoundLeavesRoomForOneSync) {
  JobConfig config = good();
  config.sync.every_steps = config.sync.hard_staleness = 16;
  EXPECT_EQ(keys_of(config), "");
  config.sync.hard_staleness = 15;
  EXPECT_EQ(keys_of(config), "sync.staleness.hard ");
}

TEST(ConfigCheckTest, TheUpperBoundOfDsspIsNotBelowTheLower) {
  JobConfig config = good();
  config.commit.policy = CommitPolicyKind::kDssp;
  config.commit.staleness = config.commit.most_staleness = 5;
  EXPECT_EQ(keys_of(config), "");
  config.commit.most_staleness = 4;
  EXPECT_EQ(keys_of(config), "commit.most_staleness ");
  config.commit.policy = CommitPolicyKind::kSsp;
  EXPECT_EQ(keys_of(config), "");
}

TEST(ConfigCheckTest, LockstepCountsSteps) {
  JobConfig config = good();
  config.sync.strategy = SyncStrategy::kLockstep;
  EXPECT_EQ(keys_of(config), "");
  config.sync.every_time = 1s;
  EXPECT_EQ(keys_of(config), "sync.every ");
}

TEST(ConfigCheckTest, AJobEnds) {
  JobConfig config = good();
  config.trainer.stop = {};
  EXPECT_EQ(keys_of(config), "trainer.stop ");
  config.trainer.stop.time = 5min;
  EXPECT_EQ(keys_of(config), "");
}

TEST(ConfigCheckTest, ModelsLearnFromTheirData) {
  JobConfig config = good();
  config.trainer.model = "charlm";
  EXPECT_EQ(keys_of(config), "trainer.data.set ");
  config.trainer.data.set = "text";
  EXPECT_EQ(keys_of(config), "");
  config.trainer.model = "synthetic";
  config.trainer.stop.accuracy = 0.9;
  EXPECT_EQ(keys_of(config), "trainer.stop.accuracy ");
}

TEST(ConfigCheckTest, BoundsFitEachOther) {
  JobConfig config = good();
  config.links.silence = config.links.heartbeat;
  config.limits.message_bytes = 1 << 20;  // A slice of 256 Ki elements alone has as much.
  config.links.emulate.emplace().outages.push_back({5s, 1 << 20, 1s, false});
  EXPECT_EQ(keys_of(config), "links.silence links.emulate.outages[0] limits.message ");
}

TEST(ConfigCheckTest, MomentumIsAppliedOnce) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    JobConfig config = good();
    config.optimizer.kind = kind;
    config.compression.deep.emplace();
    EXPECT_EQ(keys_of(config), kind == OptimizerKind::kSgd ? "" : "compression.deep ");
  }
}

TEST(ConfigCheckTest, WhatHasGatheredIsNotClipped) {
  JobConfig config = good();
  config.optimizer.kind = OptimizerKind::kSgd;
  config.optimizer.clip.norm = 1.0f;
  EXPECT_EQ(keys_of(config), "");
  config.compression.deep.emplace();
  EXPECT_EQ(keys_of(config), "optimizer.clip ");
}

TEST(ConfigCheckTest, ACodecThatLosesMuchIsForLinksBetweenRegions) {
  for (std::size_t kind = 0; kind < names_of(CodecKind()).size(); ++kind) {
    JobConfig config = good();
    config.compression.wan.kind = static_cast<CodecKind>(kind);
    EXPECT_EQ(keys_of(config), "");
    config.compression.lan.kind = static_cast<CodecKind>(kind);
    EXPECT_EQ(keys_of(config),
              kind <= static_cast<std::size_t>(CodecKind::kInt8) ? "" : "compression.lan.codec ");
  }
}

}  // namespace
}  // namespace isthmus::core
