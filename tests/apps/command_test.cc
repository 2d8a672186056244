#include "apps/command.h"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "isthmus/version.h"

namespace isthmus::apps {
namespace {

std::vector<std::string> seen;

int record(Arguments arguments) {
  seen.assign(arguments.begin(), arguments.end());
  return 7;
}
int run_out_of_memory(Arguments) { throw std::bad_alloc(); }

constexpr Command kCommands[] = {{"record", "writes down what it gets", record},
                                 {"fall", "throws", run_out_of_memory}};

struct Outcome {
  int code;
  std::string out, err;
};

Outcome run(const std::vector<std::string>& arguments) {
  seen.clear();
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_isthmus(kCommands, arguments);
  return {code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

TEST(CommandTest, GivesAVerbWhatFollowsIt) {
  EXPECT_EQ(run({"record", "job.yaml", "--quiet"}).code, 7);
  EXPECT_EQ(seen, (std::vector<std::string>{"job.yaml", "--quiet"}));
  EXPECT_EQ(run({"help", "record"}).code, 7);
  EXPECT_EQ(seen, (std::vector<std::string>{"--help"}));
}

TEST(CommandTest, HelpNamesEveryVerb) {
  for (const char* flag : {"--help", "-h", "help"}) {
    const Outcome outcome = run({flag});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find("record     writes down what it gets\n"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("fall       throws\n"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.err, "");
  }
  // Without a verb the same goes to stderr: nothing was asked for.
  EXPECT_EQ(run({}).code, 4);
  EXPECT_EQ(run({}).out, "");
}

TEST(CommandTest, PrintsItsVersion) {
  EXPECT_EQ(run({"--version"}).out, "isthmus " + std::string(kVersion) + "\n");
  EXPECT_EQ(run({"--version"}).code, 0);
}

TEST(CommandTest, SuggestsTheVerbThatWasMeant) {
  const Outcome outcome = run({"recrod"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("isthmus: there is no verb 'recrod'; did you mean 'record'?"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(run({"--quiet"}).code, 4);
}

TEST(CommandTest, AnExceptionIsAnInternalError) {
  const Outcome outcome = run({"fall"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.err.rfind("isthmus: internal error: ", 0), 0u) << outcome.err;
}

}  // namespace
}  // namespace isthmus::apps
