#include "apps/plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "core/config_file.h"
#include "trainer/model_table.h"

namespace isthmus::apps {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

Plan plan_of(const core::JobConfig& config, std::optional<std::vector<TensorSpec>> tensors) {
  auto plan = make_plan(config, std::move(tensors));
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.ok() ? *std::move(plan) : Plan{};
}

// Regions of one server, one shard and one worker each.
core::JobConfig regions(std::size_t count) {
  core::JobConfig config;
  for (std::size_t i = 0; i < count; ++i) {
    core::RegionConfig& region = config.regions.emplace_back();
    region.name = std::string(1, static_cast<char>('a' + i));
    const auto port = static_cast<std::uint16_t>(7000 + 10 * i);
    region.servers.push_back({});
    region.servers[0].lan = {"127.0.0.1", port};
    region.servers[0].wan = {"127.0.0.1", static_cast<std::uint16_t>(port + 5)};
  }
  config.trainer.stop.steps = 100;
  config.security.plaintext = true;
  return config;
}

// The quickstart's model has weights of 200704, 32768 and 1280 elements and biases of 256, 128 and 10. The
// first is frankfurt's to keep, the others, 34442 together, are virginia's. At 1 % at most 2207, 360 and 14
// elements of them travel: 5 bytes, 8 for each 256 elements, 2 for each value, and its index in 1 + b bits, b
// being 6, and n / 2^b bits more; the biases as fp32.
constexpr std::uint64_t kFirst = 5 + 9 * 8 + 2 * 2207 + (7 * 2207 + 200704 / 64) / 8;
constexpr std::uint64_t kOthers = (5 + 2 * 8 + 2 * 360 + (7 * 360 + 32768 / 64) / 8) +
                                  (5 + 8 + 2 * 14 + (7 * 14 + 1280 / 64) / 8) + 4 * (256 + 128 + 10);

class QuickstartPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto config = core::load_config(std::string(ISTHMUS_SOURCE_DIR) + "/configs/quickstart.yaml");
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    auto table = models::model_table(config->trainer);
    ASSERT_TRUE(table.ok());
    plan_ = plan_of(*config, *table);
  }
  Plan plan_;
};

TEST_F(QuickstartPlanTest, CountsWhatThereIs) {
  ASSERT_TRUE(plan_.model);
  EXPECT_EQ(plan_.model->tensors, 6u);
  EXPECT_EQ(plan_.model->slices, 6u);
  EXPECT_EQ(plan_.model->elements, 235146u);
  ASSERT_EQ(plan_.regions.size(), 2u);
  const RegionPlan& frankfurt = plan_.regions[0];
  EXPECT_EQ(frankfurt.workers, 2u);
  EXPECT_EQ(frankfurt.home_slices, 1u);
  EXPECT_EQ(frankfurt.home_elements, 200704u);
  EXPECT_EQ(plan_.regions[1].home_slices, 5u);
  EXPECT_EQ(plan_.regions[1].home_elements, 34442u);
  ASSERT_EQ(frankfurt.servers.size(), 1u);
  EXPECT_EQ(frankfurt.servers[0].wan.to_string(), "127.0.0.1:7200");
  ASSERT_EQ(frankfurt.servers[0].shards.size(), 2u);
  EXPECT_EQ(frankfurt.servers[0].shards[1].lan.to_string(), "127.0.0.1:7101");
  EXPECT_EQ(frankfurt.servers[0].shards[0].elements, 200704u);
  EXPECT_EQ(frankfurt.servers[0].shards[1].slices, 5u);
  EXPECT_EQ(frankfurt.servers[0].shards[1].elements, 34442u);
}

TEST_F(QuickstartPlanTest, CostsWhatItsRecordsNeed) {
  ASSERT_EQ(plan_.links.size(), 2u);
  const LinkPlan& there = plan_.links[0];
  EXPECT_EQ(there.from, "frankfurt");
  EXPECT_EQ(there.to, "virginia");
  EXPECT_EQ(there.contributions, kOthers);
  EXPECT_EQ(there.global_deltas, kFirst);
  // Six records with a frame of 32, a meta of 40 and 22 of TLS; five acknowledgements with a meta of 20.
  EXPECT_EQ(there.overhead, 6u * (32 + 40 + 22) + 5u * (32 + 20 + 22));
  EXPECT_EQ(there.sync(), 10499u);
  EXPECT_EQ(there.transfer, nanoseconds(8399200));  // At 1.25 MB/s.
  // Initial values and final ones of what is at home here, final contributions to the rest.
  EXPECT_EQ(there.start_and_end, 2u * 4 * 200704 + 4u * 34442);
  const LinkPlan& back = plan_.links[1];
  EXPECT_EQ(back.contributions, kFirst);
  EXPECT_EQ(back.global_deltas, kOthers);
  EXPECT_EQ(back.sync(), 10203u);
  EXPECT_EQ(back.start_and_end, 2u * 4 * 34442 + 4u * 200704);
}

TEST_F(QuickstartPlanTest, ASyncGoesToTheHomeAndBack) {
  // The largest slice decides: 6908 bytes with what is around them, twice, and 40 ms each way.
  EXPECT_EQ(plan_.sync_time, 2 * (milliseconds(40) + nanoseconds(5526400)));
}

TEST_F(QuickstartPlanTest, AddsUpUntilTheStop) {
  EXPECT_EQ(plan_.syncs, 375u);
  EXPECT_EQ(plan_.wan_bytes, 1743400u + 1078352u + 375u * (10499u + 10203u));
  EXPECT_EQ(plan_.dense_bytes, 2ull * 4 * 235146 * 3000);
  EXPECT_TRUE(plan_.warnings.empty());
}

TEST_F(QuickstartPlanTest, EstimatesTheServersMemory) {
  constexpr std::uint64_t kFloats = 4 * 235146;
  const MemoryPlan& memory = plan_.regions[0].servers[0].memory;
  EXPECT_EQ(memory.parameters, 2 * kFloats);  // And encoded as fp32.
  EXPECT_EQ(memory.optimizer, kFloats);       // One momentum.
  EXPECT_EQ(memory.contributions, 2 * kFloats);
  EXPECT_EQ(memory.region, 2 * kFloats + kOthers);
  EXPECT_EQ(memory.home, 4u * 200704 + 2 * kFirst);
  EXPECT_EQ(memory.total(), 7403283u);
}

TEST(PlanTest, EveryCodecCostsWhatItsRecordsDo) {
  const std::pair<core::CodecConfig, std::uint64_t> cases[] = {
      {{core::CodecKind::kFp32, 1}, 4 * 5000},
      {{core::CodecKind::kFp16, 1}, 2 * 5000},
      {{core::CodecKind::kBf16, 1}, 2 * 5000},
      {{core::CodecKind::kInt8, 1}, 5000 + 4 * 20},
      {{core::CodecKind::kTopk, 0.1}, 5 + 3 * 8 + 2 * 550 + (4 * 550 + 5000 / 8) / 8},
      {{core::CodecKind::kRandk, 0.1}, 21 + 2 * 500},
  };
  for (const auto& [codec, bytes] : cases) {
    core::JobConfig config = regions(2);
    config.compression.wan = codec;
    const Plan plan = plan_of(config, {{{"w", {5000}}}});
    EXPECT_EQ(plan.links[0].global_deltas, bytes) << to_string(codec.kind);
    EXPECT_EQ(plan.links[0].contributions, 0u);
    EXPECT_EQ(plan.links[0].overhead, 72u);  // Without TLS.
    EXPECT_EQ(plan.links[1].contributions, bytes);
    EXPECT_EQ(plan.links[1].overhead, 72u + 52u);
    EXPECT_FALSE(plan.links[0].transfer);
    EXPECT_FALSE(plan.sync_time);
  }
}

TEST(PlanTest, ThreeRegionsSpeakToTheHomesOnly) {
  core::JobConfig config = regions(3);
  config.compression.wan.kind = core::CodecKind::kFp32;
  config.slice_elements = 1000;
  const Plan plan = plan_of(config, {{{"w", {2000}}}});  // a and b are home to 1000 elements each.
  ASSERT_EQ(plan.links.size(), 6u);
  EXPECT_EQ(plan.regions[2].home_slices, 0u);
  const auto link = [&](std::size_t i) {
    return std::pair(plan.links[i].contributions, plan.links[i].global_deltas);
  };
  EXPECT_EQ(link(0), std::pair(std::uint64_t{4000}, std::uint64_t{4000}));  // a -> b
  EXPECT_EQ(link(1), std::pair(std::uint64_t{0}, std::uint64_t{4000}));     // a -> c
  EXPECT_EQ(link(4), std::pair(std::uint64_t{4000}, std::uint64_t{0}));     // c -> a
  EXPECT_EQ(plan.dense_bytes, 2ull * 2 * 4 * 2000 * 100);
  EXPECT_EQ(plan.regions[0].servers[0].memory.home, 2u * (4000 + 2 * 4000));
}

TEST(PlanTest, DeltasLeaveAsTheirSlicesAreFolded) {
  core::JobConfig config = regions(2);
  config.compression.wan.kind = core::CodecKind::kFp32;
  config.slice_elements = 982;  // With what is around it, 4000 bytes.
  config.links.emulate = core::EmulateConfig{.rate_bytes_per_sec = 4000, .rtt = std::chrono::seconds(1)};
  // Four slices, a's and b's in turn. Contributions take the first two seconds each way and arrive after 1.5
  // and 2.5; the deltas follow at once, for two more seconds, and arrive half a second later.
  EXPECT_EQ(plan_of(config, {{{"w", {4 * 982}}}}).sync_time, milliseconds(4500));
  // With one slice nothing overlaps.
  EXPECT_EQ(plan_of(config, {{{"w", {982}}}}).sync_time, milliseconds(3000));
}

TEST(PlanTest, SyncsFollowStepsAndTime) {
  const std::vector<TensorSpec> table = {{"w", {5000}}};
  core::JobConfig config = regions(2);
  config.trainer.stop.time = std::chrono::seconds(10);
  EXPECT_EQ(plan_of(config, table).syncs, 12u);
  config.sync.every_time = std::chrono::seconds(1);
  EXPECT_EQ(plan_of(config, table).syncs, 22u);
  config.sync.every_steps = 0;
  EXPECT_EQ(plan_of(config, table).syncs, 10u);
  config.trainer.stop.time.reset();
  EXPECT_EQ(plan_of(config, table).syncs, std::nullopt);
  EXPECT_EQ(plan_of(config, table).wan_bytes, std::nullopt);
  EXPECT_TRUE(plan_of(config, table).dense_bytes);
  config.trainer.stop.steps.reset();
  EXPECT_EQ(plan_of(config, table).dense_bytes, std::nullopt);
}

TEST(PlanTest, OneRegionHasNoWan) {
  const Plan plan = plan_of(regions(1), {{{"w", {5000}}}});
  EXPECT_TRUE(plan.links.empty());
  EXPECT_EQ(plan.syncs, 0u);
  EXPECT_EQ(plan.wan_bytes, 0u);
  EXPECT_EQ(plan.dense_bytes, 0u);
  EXPECT_EQ(plan.regions[0].servers[0].memory.region, 0u);
  EXPECT_EQ(plan.regions[0].servers[0].memory.home, 0u);
}

TEST(PlanTest, AnUnknownModelPlansItsProcesses) {
  const Plan plan = plan_of(regions(2), std::nullopt);
  EXPECT_FALSE(plan.model);
  EXPECT_TRUE(plan.links.empty());
  ASSERT_EQ(plan.regions.size(), 2u);
  EXPECT_EQ(plan.regions[1].servers[0].shards[0].lan.port, 7010u);
}

TEST(PlanTest, AnUnlimitedRateTakesNoTime) {
  core::JobConfig config = regions(2);
  config.links.emulate = core::EmulateConfig{.rtt = milliseconds(80)};
  EXPECT_EQ(plan_of(config, {{{"w", {5000}}}}).sync_time, milliseconds(80));
  config.links.emulate->trace = "trace.txt";  // Not a rate that is known now.
  EXPECT_EQ(plan_of(config, {{{"w", {5000}}}}).sync_time, std::nullopt);
}

TEST(PlanTest, AbsurdNumbersStopAtTheLargest) {
  core::JobConfig config = regions(2);
  config.trainer.stop.steps = 1'000'000'000'000;
  config.slice_elements = 1u << 26;
  config.limits.message_bytes = 1ull << 40;
  config.compression.wan.kind = core::CodecKind::kFp32;
  config.links.emulate = core::EmulateConfig{.rate_bytes_per_sec = 1};
  const Plan plan = plan_of(config, {{{"w", {1ull << 36}}}});
  EXPECT_EQ(plan.dense_bytes, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(plan.wan_bytes, std::numeric_limits<std::uint64_t>::max());
  EXPECT_GT(*plan.sync_time, std::chrono::hours(24 * 365));
}

TEST(PlanTest, AShardThatNoMessageHoldsIsAnError) {
  core::JobConfig config = regions(2);
  config.limits.message_bytes = 1 << 20;
  const auto plan = make_plan(config, {{{"w", {1 << 20}}}});
  EXPECT_NE(plan.status().message().find("limits.message: 1MiB"), std::string::npos)
      << plan.status().to_string();
}

TEST(PlanTest, ATableThatCannotBeTrainedIsAnError) {
  EXPECT_EQ(make_plan(regions(2), {{{"w", {0}}}}).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus::apps
