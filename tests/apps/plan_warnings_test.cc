#include "apps/plan_warnings.h"

#include <gtest/gtest.h>

#include <string>

namespace isthmus::apps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Two regions on this machine, whose model is one tensor of 250000 elements at home in the first: as fp32,
// 1 MB a sync each way, 1 s at the emulated 1 MB/s; there and back 2.1 s.
core::JobConfig quiet_job() {
  core::JobConfig config;
  config.regions.resize(2);
  for (std::uint16_t i = 0; i < 2; ++i) {
    config.regions[i].name = i == 0 ? "near" : "far";
    config.regions[i].servers.resize(1);
    config.regions[i].servers[0].lan = {"127.0.0.1", static_cast<std::uint16_t>(7000 + i)};
    config.regions[i].servers[0].wan = {"localhost", static_cast<std::uint16_t>(7100 + i)};
  }
  config.compression.wan.kind = core::CodecKind::kFp32;
  config.links.emulate = core::EmulateConfig{.rate_bytes_per_sec = 1'000'000, .rtt = milliseconds(100)};
  config.trainer.stop.steps = 80;
  return config;
}

std::vector<core::ConfigProblem> warnings_of(const core::JobConfig& config) {
  const auto plan = make_plan(config, {{{"w", {250000}}}});
  EXPECT_TRUE(plan.ok());
  return plan.ok() ? plan->warnings : std::vector<core::ConfigProblem>{};
}

// The one warning of `config` is about `key` and says `text`.
void expect_one(const core::JobConfig& config, const std::string& key, const std::string& text) {
  const auto warnings = warnings_of(config);
  ASSERT_EQ(warnings.size(), 1u) << (warnings.empty() ? "" : warnings[1].message);
  EXPECT_EQ(warnings[0].key, key);
  EXPECT_NE(warnings[0].message.find(text), std::string::npos) << warnings[0].message;
}

TEST(PlanWarningsTest, AQuietJobHasNone) { EXPECT_TRUE(warnings_of(quiet_job()).empty()); }

TEST(PlanWarningsTest, TooSparse) {
  core::JobConfig config = quiet_job();
  config.compression.wan = {core::CodecKind::kTopk, 0.002};
  EXPECT_TRUE(warnings_of(config).empty());
  config.compression.wan.keep = 0.001;
  expect_one(config, "compression.wan.keep", "0.1%");
}

TEST(PlanWarningsTest, SparseParameters) {
  core::JobConfig config = quiet_job();
  config.compression.lan.kind = core::CodecKind::kTopk;
  expect_one(config, "compression.lan", "dense codec");
}

TEST(PlanWarningsTest, PlaintextThatLeavesTheMachine) {
  core::JobConfig config = quiet_job();
  config.links.emulate.reset();
  config.security.plaintext = true;
  EXPECT_TRUE(warnings_of(config).empty());
  config.regions[1].servers[0].wan.host = "far.example";
  expect_one(config, "security.plaintext", "far.example:7101");
  config.security.plaintext = false;
  EXPECT_TRUE(warnings_of(config).empty());
}

TEST(PlanWarningsTest, EmulationOnOtherMachines) {
  core::JobConfig config = quiet_job();
  config.regions[0].servers[0].lan.host = "10.0.0.5";
  expect_one(config, "links.emulate", "10.0.0.5:7000");
}

TEST(PlanWarningsTest, ShardsWithoutSlices) {
  core::JobConfig config = quiet_job();
  config.regions[1].servers[0].shards = 3;
  expect_one(config, "regions[1].servers",
             "2 shards of far would have nothing to do: the model has 1 slice;");
}

TEST(PlanWarningsTest, ABoundBelowTwoSyncs) {
  core::JobConfig config = quiet_job();
  config.sync.hard_staleness = 16;
  EXPECT_TRUE(warnings_of(config).empty());
  config.sync.hard_staleness = 15;
  expect_one(config, "sync.staleness.hard", "15 steps");
  config.sync.then = core::HardBoundAction::kContinue;
  EXPECT_TRUE(warnings_of(config).empty());
}

TEST(PlanWarningsTest, ADeadlineBeforeContributionsArrive) {
  core::JobConfig config = quiet_job();
  config.sync.deadline = milliseconds(1060);
  EXPECT_TRUE(warnings_of(config).empty());
  config.sync.deadline = milliseconds(1040);
  expect_one(config, "sync.deadline", "far contributes can reach near (1.1 s)");
}

TEST(PlanWarningsTest, LockstepSaysWhatItCosts) {
  core::JobConfig config = quiet_job();
  config.sync.strategy = core::SyncStrategy::kLockstep;
  config.sync.every_steps = 1;
  expect_one(config, "sync.strategy", "at least 2.1 s at every step, 2 min 48 s in all");
  config.sync.every_steps = 8;
  expect_one(config, "sync.strategy", "at least 2.1 s every 8 steps, 21.0 s in all");
}

TEST(PlanWarningsTest, MoreSyncsThanTheLinkCanDo) {
  core::JobConfig config = quiet_job();
  config.sync.every_time = seconds(3);
  EXPECT_TRUE(warnings_of(config).empty());
  config.sync.every_time = seconds(1);
  expect_one(config, "sync.every",
             "a sync every 1.0 s is more than the link can do: one takes at least 2.1 s");
}

TEST(PlanWarningsTest, StepsOfKnownLengthThatOutrunTheLink) {
  core::JobConfig config = quiet_job();
  config.trainer.model = "synthetic";
  config.trainer.synthetic.step_time = milliseconds(300);
  EXPECT_TRUE(warnings_of(config).empty());
  config.trainer.synthetic.step_time = milliseconds(10);
  expect_one(config, "sync.every", "every 80 ms");
  config.sync.hard_staleness = 200;
  const auto warnings = warnings_of(config);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[1].key, "sync.staleness.hard");
  EXPECT_NE(warnings[1].message.find("210 steps"), std::string::npos) << warnings[1].message;
}

TEST(PlanWarningsTest, WhatIsOnThisMachine) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"})
    EXPECT_TRUE(is_loopback({host, 1})) << host;
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "127.example", "example"})
    EXPECT_FALSE(is_loopback({host, 1})) << host;
}

}  // namespace
}  // namespace isthmus::apps
