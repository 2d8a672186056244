#include "apps/plan_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/config_file.h"

namespace isthmus::apps {
namespace {

constexpr const char* kSmall = R"(
job: small
slice: 500 elements
regions:
  - { name: frankfurt, workers: 2, servers: [{ lan: 127.0.0.1:7100, wan: 127.0.0.1:7200, shards: 2 }] }
  - { name: rio, servers: [{ lan: 127.0.0.1:7110, wan: 127.0.0.1:7210 }] }
sync: { every: 4 steps }
compression: { wan: int8 }
links: { emulate: { rate: 1Mbps, rtt: 100ms } }
security: { plaintext: true }
trainer: { model: synthetic, synthetic: { tensors: 1, elements: 1500, step_time: 10ms }, stop: { steps: 400 } }
)";

class PlanReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto config = core::parse_config(kSmall, "small.yaml");
    ASSERT_TRUE(config.ok()) << config.status().message();
    config_ = *config;
  }

  // Of one tensor of 1500 elements: two slices at home in frankfurt, one in rio.
  Plan plan() const {
    auto made = make_plan(config_, {{{"w", {1500}}}});
    EXPECT_TRUE(made.ok());
    return made.ok() ? *std::move(made) : Plan{};
  }

  core::JobConfig config_;
};

TEST_F(PlanReportTest, ReadsAsTables) {
  const std::string text = plan_text(config_, plan());
  EXPECT_EQ(text, R"(job small: 2 regions, 2 servers, 3 shards, 3 workers
model synthetic: 1 tensor, 3 slices, 1,500 elements

region     server  shard  address         slices  elements
frankfurt       0      0  127.0.0.1:7100       2     1,000
frankfurt       0      1  127.0.0.1:7101       1       500
rio             0      0  127.0.0.1:7110       3     1,500

region     server  other regions reach it at    memory  parameters  optimizer  workers'      sync     home
frankfurt       0  127.0.0.1:7200             41.5 KiB    11.7 KiB        0 B  11.7 KiB  12.2 KiB  5.9 KiB
rio             0  127.0.0.1:7210             33.2 KiB    11.7 KiB        0 B   5.9 KiB  12.7 KiB  2.9 KiB

link               home to  bytes a sync  contributions  global  around them  transfer
frankfurt -> rio  2 slices       1.8 KiB          508 B  1016 B        268 B     14 ms
rio -> frankfurt   1 slice       1.8 KiB         1016 B   508 B        320 B     15 ms

sync: outer every 4 steps, int8; takes about 114 ms at 1.0 Mbit/s, 100 ms there and back
until the stop: at most 100 syncs, 373 KiB on all links together
synchronous dense fp32 would send 4.6 MiB, 13 times as much

warning: sync.every: a sync every 40 ms is more than the link can do: one takes at least 114 ms, and the next waits for it
)");
}

TEST_F(PlanReportTest, AnUnknownModelStillHasItsProcesses) {
  config_.trainer.model = "custom";
  const auto made = make_plan(config_, std::nullopt);
  ASSERT_TRUE(made.ok());
  const std::string text = plan_text(config_, *made);
  EXPECT_EQ(text, R"(job small: 2 regions, 2 servers, 3 shards, 3 workers
model custom: its workers alone know its tensors, so nothing more can be planned

region     server  shard  address
frankfurt       0      0  127.0.0.1:7100
frankfurt       0      1  127.0.0.1:7101
rio             0      0  127.0.0.1:7110

region     server  other regions reach it at
frankfurt       0  127.0.0.1:7200
rio             0  127.0.0.1:7210

sync: outer every 4 steps, int8
)");
  const auto json = nlohmann::json::parse(plan_json(config_, *made));
  EXPECT_TRUE(json["model"]["elements"].is_null());
  EXPECT_TRUE(json["dense_bytes"].is_null());
  EXPECT_TRUE(json["links"].empty());
  EXPECT_EQ(json["regions"].size(), 2u);
}

TEST_F(PlanReportTest, OneRegionSaysNothingOfSyncs) {
  config_.regions.pop_back();
  const std::string text = plan_text(config_, plan());
  EXPECT_EQ(text.find("sync:"), std::string::npos) << text;
  EXPECT_EQ(text.find("link"), std::string::npos) << text;
}

TEST_F(PlanReportTest, IsOneObjectForPrograms) {
  const std::string text = plan_json(config_, plan());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["job"], "small");
  EXPECT_EQ(json["model"]["name"], "synthetic");
  EXPECT_EQ(json["model"]["elements"], 1500);
  EXPECT_EQ(json["regions"][0]["name"], "frankfurt");
  EXPECT_EQ(json["regions"][0]["home_slices"], 2);
  EXPECT_EQ(json["regions"][0]["servers"][0]["shards"][1]["lan"], "127.0.0.1:7101");
  EXPECT_EQ(json["regions"][0]["servers"][0]["memory"]["optimizer"], 0);
  const auto& link = json["links"]["frankfurt->rio"];
  EXPECT_EQ(link["global_bytes"], 2 * (500 + 4 * 2));
  EXPECT_EQ(link["contribution_bytes"], 508);
  EXPECT_EQ(link["overhead_bytes"], 3 * 72 + 52);
  EXPECT_DOUBLE_EQ(link["transfer_seconds"], (3 * 508 + 268) / 125000.0);
  // Two contributions to frankfurt one after the other, half a round trip, a delta and the other half.
  EXPECT_DOUBLE_EQ(json["sync_seconds"], 0.1 + 3 * (508 + 72) / 125000.0);
  EXPECT_EQ(json["syncs"], 100);
  EXPECT_EQ(json["dense_bytes"], 2 * 4 * 1500 * 400);
  EXPECT_EQ(json["warnings"][0]["key"], "sync.every");
}

}  // namespace
}  // namespace isthmus::apps
