#include "apps/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/config_file.h"

namespace isthmus::apps {
namespace {

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    char name[] = "/tmp/isthmus-run-XXXXXX";
    folder_ = mkdtemp(name);
    config_ = *core::load_config(std::string(ISTHMUS_SOURCE_DIR) + "/configs/synthetic.yaml");
  }
  ~RunFolderTest() override { std::filesystem::remove_all(folder_); }

  static std::string text_of(const std::filesystem::path& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
  core::JobConfig config_;
};

TEST_F(RunFolderTest, HoldsTheConfigAsRunAndWhatIsWritten) {
  auto run = RunFolder::create(config_, folder_ / "a");
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  const auto again = core::load_config(run->config().string());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(core::to_yaml(*again), core::to_yaml(config_));
  ASSERT_TRUE(run->append_metrics("{\"step\":1}").ok());
  ASSERT_TRUE(run->append_metrics("{\"step\":2}").ok());
  ASSERT_TRUE(run->write_summary("{}").ok());
  EXPECT_EQ(text_of(run->path() / "metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_EQ(text_of(run->path() / "summary.json"), "{}\n");
  EXPECT_EQ(run->log("frankfurt/worker 1"), run->path() / "logs" / "frankfurt-worker-1.log");
}

TEST_F(RunFolderTest, AFolderThatHoldsARunIsLeftAlone) {
  ASSERT_TRUE(RunFolder::create(config_, folder_ / "a").ok());
  EXPECT_EQ(RunFolder::create(config_, folder_ / "a").status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(RunFolderTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ / "file") << "in the way";
  const auto run = RunFolder::create(config_, folder_ / "file" / "run");
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find((folder_ / "file").string()), std::string::npos)
      << run.status().to_string();
}

// A file size limit stands in for a full disk: both fail in the middle of a write.
TEST_F(RunFolderTest, AFullDiskIsAnErrorThatNamesTheFile) {
  auto run = RunFolder::create(config_, folder_ / "a");
  ASSERT_TRUE(run.ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = run->write_summary(std::string(10000, 'x'));
  const Status metrics = run->append_metrics(std::string(10000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old);
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << status.to_string();
  EXPECT_NE(status.message().find("summary.json"), std::string::npos);
  EXPECT_EQ(metrics.code(), ErrorCode::kResourceExhausted) << metrics.to_string();
}

}  // namespace
}  // namespace isthmus::apps
