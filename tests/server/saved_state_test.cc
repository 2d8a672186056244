#include "server/saved_state.h"

#include <gtest/gtest.h>

#include "tests/server/checkpoint_support.h"

namespace isthmus::server {
namespace {

void expect_misfit(const SavedServer& saved, const core::JobConfig& config, std::string_view text,
                   std::uint32_t region = 0) {
  const Status fits = check_fits(saved, config, region, 0);
  EXPECT_FALSE(fits.ok());
  EXPECT_NE(fits.message().find(text), std::string::npos) << fits.to_string();
}

core::JobConfig two_shards() {
  core::JobConfig config = small_job({{2}, {2}});
  config.optimizer.kind = core::OptimizerKind::kAdam;
  return config;
}

TEST(SavedStateTest, FitsTheConfigThatItWasMadeWith) {
  EXPECT_TRUE(check_fits(saved_server(two_shards()), two_shards(), 0, 0).ok());
}

TEST(SavedStateTest, SaysWhatDiffers) {
  const SavedServer saved = saved_server(two_shards());
  core::JobConfig config = two_shards();
  config.job = "other";
  expect_misfit(saved, config, "job 'small', and this is 'other'");
  expect_misfit(saved, two_shards(), "region r0, server 0, and this is r1, server 0", 1);
  config = two_shards();
  config.optimizer.kind = core::OptimizerKind::kSgd;
  expect_misfit(saved, config, "optimizer adam, and this is sgd");
  config = two_shards();
  config.commit.compensation = core::CompensationConfig{.adaptive = true};
  expect_misfit(saved, config, "adaptive compensation off, and this is on");
  config = two_shards();
  config.regions[0].servers[0].shards = 3;
  expect_misfit(saved, config, "2 shards, and this is one with 3");
  config = two_shards();
  config.regions.push_back(config.regions[0]);
  config.regions[2].name = "r2";
  expect_misfit(saved, config, "has another home, or other regions");
}

TEST(SavedStateTest, HoldsTheSlicesAgainstTheLayout) {
  SavedServer saved = saved_server(two_shards());
  std::swap(saved.shards[0], saved.shards[1]);
  expect_misfit(saved, two_shards(), "other slices");
  saved = saved_server(two_shards());
  saved.shards[1].slices.clear();
  expect_misfit(saved, two_shards(), "other slices");
  saved = saved_server(two_shards());
  saved.shards[0].slices[0].state.pop_back();
  expect_misfit(saved, two_shards(), "an optimizer with 1 arrays a slice");
  saved = saved_server(two_shards());
  saved.shards[0].slices[0].version = 0;
  expect_misfit(saved, two_shards(), "has no values");
}

TEST(SavedStateTest, TheStepIsTheSlowestShards) {
  SavedServer saved = saved_server(two_shards(), 400);
  EXPECT_EQ(saved.step(), 400u);
  saved.shards[0].clock = 500;
  EXPECT_EQ(saved.step(), 401u);
  saved.shards.clear();
  EXPECT_EQ(saved.step(), 0u);
}

}  // namespace
}  // namespace isthmus::server
