// The worker's loop against a real server.

#include "trainer/worker_loop.h"

#include <gtest/gtest.h>

#include <mutex>

#include "core/safetensors.h"
#include "tests/support/scratch_folder.h"
#include "tests/trainer/one_region.h"
#include "trainer/synthetic.h"

namespace isthmus::trainer {
namespace {

struct Ran {
  Status status;
  std::string words;
};

Ran run(const core::JobConfig& config, std::uint32_t worker, std::optional<std::filesystem::path> save = {},
        std::stop_token stop = {}) {
  auto workload =
      models::SyntheticWorkload::create(config.trainer, {worker, config.regions[0].workers}, stop);
  if (!workload.ok()) return {workload.status(), ""};
  Ran ran;
  std::mutex mutex;
  const Status status =
      run_worker(**workload, {config, "frankfurt", worker, std::move(save), stop, [&](std::string_view line) {
                                std::lock_guard lock(mutex);
                                ran.words += std::string(line) + "\n";
                              }});
  ran.status = status;
  return ran;
}

TEST(WorkerLoopTest, TrainsItsStepsAndSavesWhatTheServerHolds) {
  testing::OneRegion region(2);
  const ScratchFolder scratch;
  const auto file = scratch.path() / "model.safetensors";
  Ran other;
  std::jthread second([&] { other = run(region.config, 1); });
  const Ran first = run(region.config, 0, file);
  second.join();
  ASSERT_TRUE(first.status.ok()) << first.status.to_string();
  ASSERT_TRUE(other.status.ok()) << other.status.to_string();
  const auto saved = core::read_safetensors(file);
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  // Each of 10 steps adds the mean of two gradients of -1, at a learning rate of 1.
  for (const auto& values : saved->values)
    for (const float value : values) EXPECT_EQ(value, 10.0f);
}

TEST(WorkerLoopTest, ANanIsRefusedAndTheWorkerGoesOn) {
  testing::OneRegion region(1, [](core::JobConfig& config) { config.trainer.synthetic.nan_at_step = 4; });
  const ScratchFolder scratch;
  const auto file = scratch.path() / "model.safetensors";
  const Ran ran = run(region.config, 0, file);
  ASSERT_TRUE(ran.status.ok()) << ran.status.to_string();
  EXPECT_NE(ran.words.find("worker 0 of region frankfurt, step 3"), std::string::npos) << ran.words;
  const auto saved = core::read_safetensors(file);
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  for (const auto& values : saved->values)
    for (const float value : values) EXPECT_EQ(value, 9.0f);
}

TEST(WorkerLoopTest, AStopRequestEndsItBetweenSteps) {
  testing::OneRegion region(1, [](core::JobConfig& config) { config.trainer.stop.steps = 1'000'000'000; });
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(run(region.config, 0, {}, stop.get_token()).status.code(), ErrorCode::kCancelled);
}

TEST(WorkerLoopTest, ARegionThatIsNotThereIsSaid) {
  testing::OneRegion region(1);
  core::JobConfig wrong = region.config;
  wrong.job = "another";
  const Ran ran = run(wrong, 0);
  EXPECT_EQ(ran.status.code(), ErrorCode::kRefused);
  EXPECT_NE(ran.status.message().find("this is job 'test', not 'another'"), std::string::npos)
      << ran.status.to_string();
}

}  // namespace
}  // namespace isthmus::trainer
