#include "apps/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace isthmus::apps {
namespace {

using std::chrono::milliseconds;

struct Values {
  std::string config;
  bool quiet = false;
  std::string name = "before";
  std::vector<std::string> set;
  std::uint64_t count = 1;
  core::Duration time{0};
  std::uint64_t size = 0;
  std::uint64_t rate = 0;
};

struct Outcome {
  std::optional<int> code;
  Values values;
  std::string out, err;
  bool name_given = false;
};

Outcome parse(const std::vector<std::string>& arguments) {
  Outcome outcome;
  Values& values = outcome.values;
  CommandLine line("verb", "Does things.");
  line.positional("CONFIG", values.config, "the job", CommandLine::Need::kRequired);
  line.flag("-q,--quiet", values.quiet, "say less");
  line.text("--name", values.name, "NAME", "a name");
  line.texts("--set", values.set, "KEY=VALUE", "changes the config");
  line.number("--count", values.count, "how many");
  line.duration("--time", values.time, "how long");
  line.bytes("--size", values.size, "how large");
  line.rate("--rate", values.rate, "how fast");
  line.examples("isthmus verb job.yaml");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  outcome.code = line.parse(arguments);
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  outcome.name_given = line.given("--name");
  return outcome;
}

TEST(CommandLineTest, ReadsEveryKindOfValue) {
  const Outcome outcome = parse({"job.yaml", "-q", "--name=x y", "--set", "a=1", "--set", "b=[2, 3]",
                                 "--count", "12", "--time", "80ms", "--size", "2KiB", "--rate", "8kbps"});
  EXPECT_EQ(outcome.code, std::nullopt) << outcome.err;
  EXPECT_EQ(outcome.values.config, "job.yaml");
  EXPECT_TRUE(outcome.values.quiet);
  EXPECT_EQ(outcome.values.name, "x y");
  EXPECT_TRUE(outcome.name_given);
  EXPECT_EQ(outcome.values.set, (std::vector<std::string>{"a=1", "b=[2, 3]"}));
  EXPECT_EQ(outcome.values.count, 12u);
  EXPECT_EQ(outcome.values.time, milliseconds(80));
  EXPECT_EQ(outcome.values.size, 2048u);
  EXPECT_EQ(outcome.values.rate, 1000u);
}

TEST(CommandLineTest, LeavesAloneWhatIsNotGiven) {
  const Outcome outcome = parse({"--set", "a=1", "job.yaml"});  // One value a flag: the config is not eaten.
  EXPECT_EQ(outcome.code, std::nullopt) << outcome.err;
  EXPECT_EQ(outcome.values.config, "job.yaml");
  EXPECT_EQ(outcome.values.name, "before");
  EXPECT_FALSE(outcome.name_given);
  EXPECT_EQ(outcome.values.count, 1u);
}

TEST(CommandLineTest, HelpSaysEverything) {
  for (const char* flag : {"--help", "-h"}) {
    const Outcome outcome = parse({flag});
    EXPECT_EQ(outcome.code, 0);
    for (const char* text : {"Does things.", "isthmus verb", "CONFIG", "--quiet", "KEY=VALUE", "how fast",
                             "isthmus verb job.yaml"})
      EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in " << outcome.out;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(CommandLineTest, SaysWhatIsWrong) {
  struct Case {
    std::vector<std::string> arguments;
    std::string text;
  };
  for (const Case& c : std::vector<Case>{
           {{}, "CONFIG"},
           {{"job.yaml", "--tiem", "1s"}, "did not expect '--tiem'; did you mean '--time'?"},
           {{"job.yaml", "again"}, "did not expect 'again'"},
           {{"job.yaml", "--time"}, "--time"},
           {{"job.yaml", "--time", "80"}, "--time: '80' has no unit"},
           {{"job.yaml", "--size", "80Mbps"}, "--size: "},
           {{"job.yaml", "--rate", "fast"}, "--rate: "},
           {{"job.yaml", "--count", "-1"}, "--count"},
       }) {
    const Outcome outcome = parse(c.arguments);
    EXPECT_EQ(outcome.code, 4) << c.text;
    EXPECT_EQ(outcome.err.rfind("isthmus: verb: ", 0), 0u) << outcome.err;
    EXPECT_NE(outcome.err.find(c.text), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("see isthmus verb --help"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace isthmus::apps
