#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/bench.h"
#include "apps/report.h"

namespace isthmus::apps {
namespace {

struct Ran {
  int code = 0;
  std::string out, err;
};

Ran run(std::vector<std::string> words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Ran ran;
  ran.code = run_bench_push_pull(words);
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

TEST(BenchPushPullTest, MeasuresTheRowsAskedFor) {
  const Ran ran = run({"--row", "push_pull", "--row", "small", "--repeats", "1", "--json"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto report = nlohmann::json::parse(ran.out);
  EXPECT_EQ(report["schema"], 1);
  EXPECT_GT(report["push_pull_ratio"], 0.0);
  EXPECT_GT(report["small_ratio"], 0.0);
  ASSERT_EQ(report["rows"].size(), 2u);
  const auto& small = report["rows"][1];
  EXPECT_EQ(small["goal_is"], "at most");
  EXPECT_DOUBLE_EQ(small["ratio"], small["seconds"].get<double>() / small["beside_seconds"].get<double>());
  EXPECT_EQ(small["reached"], small["ratio"].get<double>() <= small["goal"].get<double>());
  EXPECT_EQ(ran.err, "bench: push-pull\nbench: push-pull, 1000 x 4 KiB at once\n");
}

TEST(BenchPushPullTest, PrintsATable) {
  const Ran ran = run({"--row", "push", "--repeats", "1", "--quiet"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_TRUE(ran.err.empty()) << ran.err;
  EXPECT_NE(ran.out.find("plain ZeroMQ"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find(">= 0.95"), std::string::npos) << ran.out;
}

TEST(BenchPushPullTest, SaysWhatIsWrong) {
  EXPECT_EQ(run({"--repeats", "0"}).code, kExitUsage);
  const Ran ran = run({"--row", "pusch"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_NE(ran.err.find("did you mean 'push'"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace isthmus::apps
