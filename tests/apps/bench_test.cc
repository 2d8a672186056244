#include "apps/bench.h"

#include <gtest/gtest.h>

#include "apps/report.h"

namespace isthmus::apps {
namespace {

int run(std::vector<std::string> words, std::string& out, std::string& err) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_bench(words);
  out = ::testing::internal::GetCapturedStdout();
  err = ::testing::internal::GetCapturedStderr();
  return code;
}

TEST(BenchTest, GivesASubjectItsArguments) {
  std::string out, err;
  EXPECT_EQ(run({"codec", "--help"}, out, err), kExitOk);
  EXPECT_NE(out.find("--elements"), std::string::npos) << out;
}

TEST(BenchTest, HelpsAndRefuses) {
  std::string out, err;
  EXPECT_EQ(run({"--help"}, out, err), kExitOk);
  EXPECT_NE(out.find("codec"), std::string::npos);
  EXPECT_EQ(run({}, out, err), kExitUsage);
  EXPECT_EQ(run({"codek"}, out, err), kExitUsage);
  EXPECT_NE(err.find("did you mean 'codec'"), std::string::npos) << err;
}

}  // namespace
}  // namespace isthmus::apps
