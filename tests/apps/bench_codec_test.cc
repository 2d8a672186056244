#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "apps/bench.h"
#include "apps/report.h"
#include "core/job_config.h"

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
  ran.code = run_bench_codec(words);
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

TEST(BenchCodecTest, MeasuresEveryCodecOnEveryInput) {
  const Ran ran = run({"--elements", "20000", "--repeats", "1", "--json"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto report = nlohmann::json::parse(ran.out);
  EXPECT_EQ(report["schema"], 1);
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& row : report["rows"]) {
    seen.emplace(row["codec"], row["input"]);
    EXPECT_EQ(row["backend"], "cpu");
  }
  EXPECT_EQ(seen.size(), 3 * core::names_of(core::CodecKind{}).size());
  EXPECT_TRUE(seen.contains({"int8", "heavy"}));
  EXPECT_FALSE(report["paths"].empty());
  EXPECT_NE(ran.err.find("bench: gaussian, cpu: int8\n"), std::string::npos) << ran.err;
}

TEST(BenchCodecTest, MeasuresWhatItIsTold) {
  const Ran ran = run({"--elements=5000", "--repeats=1", "--codec=topk", "--keep=1%", "--keep=10%",
                       "--backend=all", "--input=laplace", "--no-paths", "--quiet"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_TRUE(ran.err.empty()) << ran.err;
  for (const char* expected : {"topk 1%   scalar", "topk 10%  scalar", "topk 10%  cpu"})
    EXPECT_NE(ran.out.find(expected), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("memcpy"), std::string::npos) << ran.out;
}

TEST(BenchCodecTest, SaysWhatIsWrong) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--elements", "0"}, {"--elements", "2000000000"}, {"--repeats", "0"},      {"--keep", "0%"},
      {"--keep", "1"},     {"--codec", "zip"},           {"--backend", "abacus"}, {"--input", "noise"}};
  for (const auto& words : wrong) EXPECT_EQ(run(words).code, kExitUsage) << words[0] << " " << words[1];
}

}  // namespace
}  // namespace isthmus::apps
