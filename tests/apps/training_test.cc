#include "apps/training.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

// Whole jobs are what the integration tests run (tests/integration). Here: a job whose first process cannot
// be started ends before there is anything to clean up.

namespace isthmus::apps {
namespace {

TEST(TrainingTest, AJobThatCannotStartSaysWhy) {
  core::JobConfig config;
  config.job = "training-test";
  config.regions.resize(1);
  config.regions[0].name = "frankfurt";
  config.regions[0].workers = 1;
  config.regions[0].servers.resize(1);
  auto signals = core::StopSignals::create();
  ASSERT_TRUE(signals.ok());
  const std::string path = ::testing::TempDir() + "isthmus_training_" + std::to_string(getpid());
  auto folder = RunFolder::create(config, path);
  ASSERT_TRUE(folder.ok()) << folder.status().to_string();
  std::filesystem::remove_all(folder->path());  // No log can be written.
  ProgressLine progress(ProgressLine::Mode::kQuiet, stderr);
  Summary summary;
  const Status status = Training(config, 1, *folder, **signals, progress).run(summary);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("frankfurt"), std::string::npos) << status.to_string();
}

}  // namespace
}  // namespace isthmus::apps
