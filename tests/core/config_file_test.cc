#include "core/config_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/core/config_text.h"

namespace isthmus::core {
namespace {

using namespace std::chrono_literals;

std::string with(std::string from, std::string_view what, std::string_view other) {
  const std::size_t at = from.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return from.replace(at, what.size(), other);
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const Result<JobConfig> config = parse_config(text, "job.yaml", overrides);
  if (config.ok()) return "";
  EXPECT_EQ(config.status().code(), ErrorCode::kInvalidArgument);
  return config.status().message();
}

TEST(ConfigFileTest, EveryConfigOfTheRepositoryLoads) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ISTHMUS_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const Result<JobConfig> config = load_config(entry.path().string());
    ASSERT_TRUE(config.ok()) << config.status().message();
    const Result<JobConfig> again = parse_config(to_yaml(*config), "written");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(to_yaml(*again), to_yaml(*config));
  }
  EXPECT_GE(files, 7u);
}

TEST(ConfigFileTest, QuickstartIsWhatTheReadmeSays) {
  const Result<JobConfig> config = load_config(ISTHMUS_SOURCE_DIR "/configs/quickstart.yaml");
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_EQ(config->regions.size(), 2u);
  for (const RegionConfig& region : config->regions) {
    EXPECT_EQ(region.workers, 2u);
    EXPECT_EQ(region.shards(), 2u);
  }
  ASSERT_TRUE(config->links.emulate.has_value());
  EXPECT_EQ(config->links.emulate->rate_bytes_per_sec, 1'250'000u);
  EXPECT_EQ(config->links.emulate->rtt, 80ms);
  EXPECT_EQ(config->trainer.stop.steps, 3000u);
  EXPECT_EQ(config->optimizer.schedule_steps, 3000u);
}

TEST(ConfigFileTest, TheComparisonDiffersOnlyInItsRegions) {
  const Result<JobConfig> two = load_config(ISTHMUS_SOURCE_DIR "/configs/quickstart.yaml");
  for (const char* other : {"one-region", "four-regions"}) {
    Result<JobConfig> config = load_config(ISTHMUS_SOURCE_DIR "/configs/" + std::string(other) + ".yaml");
    ASSERT_TRUE(two.ok() && config.ok());
    std::uint32_t workers = 0;
    for (const RegionConfig& region : config->regions) workers += region.workers;
    EXPECT_EQ(workers, 4u);
    config->job = two->job;
    config->security = two->security;  // Each job has keys of its own.
    config->regions = two->regions;
    config->links = two->links;
    EXPECT_EQ(to_yaml(*config), to_yaml(*two));
  }
}

TEST(ConfigFileTest, AMissingFileIsNamed) {
  const Result<JobConfig> config = load_config("no/such/job.yaml");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(config.status().message().find("no/such/job.yaml"), std::string::npos);
}

TEST(ConfigFileTest, AFolderIsNoConfig) {
  const Result<JobConfig> config = load_config(ISTHMUS_SOURCE_DIR "/configs");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), ErrorCode::kInvalidArgument);
}

TEST(ConfigFileTest, AllErrorsAreReportedInTheOrderOfTheFile) {
  EXPECT_EQ(error_of(good_config() + "sync: { evry: 8 steps }\nseed: -1\n", {"links.streams=0"}),
            "--set: links.streams: '0' is out of range; give 1 to 64\n"
            "job.yaml:11: sync.evry: unknown key; did you mean 'every'?\n"
            "job.yaml:12: seed: '-1' must not be negative");
}

TEST(ConfigFileTest, ThousandErrorsAreOneScreen) {
  std::string text = good_config();
  for (int i = 0; i < 1000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const std::string error = error_of(text);
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 20);
  EXPECT_NE(error.find("\n... and 980 more"), std::string::npos);
}

TEST(ConfigFileTest, AnEmptyFileSaysWhatIsMissing) {
  EXPECT_EQ(error_of(""),
            "job.yaml:1: job: missing; name the job, for example 'job: fashion-mnist'\n"
            "job.yaml:1: regions: missing; list the regions; docs/configuration.md shows how");
}

TEST(ConfigFileTest, SomethingElseIsNoConfig) {
  for (const char* text : {"just words", "[1, 2]", "job: {}", "{",
                           "\x7f"
                           "ELF\x02",
                           "job: x\nregions: []\n"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(ConfigFileTest, ProblemsBetweenKeysHaveALineToo) {
  EXPECT_EQ(error_of(with(good_config(), "name: virginia", "name: frankfurt")),
            "job.yaml:7: regions[1].name: 'frankfurt' is the name of two regions; choose another");
  EXPECT_EQ(error_of(with(good_config(), ", wan: \"127.0.0.1:7210\"", "")),
            "job.yaml:9: regions[1].servers[0].wan: missing; give the address that other regions reach");
  EXPECT_EQ(error_of(with(good_config(), "{ steps: 100 }", "{}")),
            "job.yaml:10: trainer.stop: missing; give at least one of steps, accuracy and time, for example "
            "'stop: { steps: 3000 }'");
}

TEST(ConfigFileTest, RegionNamesAreOrdinaryWords) {
  for (const char* name :
       {"Frankfurt", "a b", "''", "a_b", "a/b", "../x", "123456789012345678901234567890123"}) {
    EXPECT_NE(error_of(with(good_config(), "name: virginia", std::string("name: ") + name)), "") << name;
  }
}

TEST(ConfigFileTest, OverridesWinOverTheFile) {
  const std::vector<std::string> overrides = {"trainer.stop.steps=7", "regions[1].workers=5",
                                              "sync.every=200ms",
                                              "optimizer={kind: adam, learning_rate: 1e-3}"};
  const Result<JobConfig> config = parse_config(good_config(), "f", overrides);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->trainer.stop.steps, 7u);
  EXPECT_EQ(config->regions[1].workers, 5u);
  EXPECT_EQ(config->sync.every_time, 200ms);
  EXPECT_EQ(config->optimizer.kind, OptimizerKind::kAdam);
}

TEST(ConfigFileTest, ErrorsInOverridesNameThem) {
  EXPECT_EQ(error_of(good_config(), {"trainer.stop.stesp=7"}),
            "--set: trainer.stop.stesp: unknown key; did you mean 'steps'?");
  EXPECT_EQ(
      error_of(good_config(), {"trainer.stop.steps"}),
      "--set: trainer.stop.steps: cannot be understood; write key=value, for example trainer.stop.steps=100");
  EXPECT_EQ(error_of(good_config(), {"sync.staleness.hard=1 step"}),
            "--set: sync.staleness.hard: 1 step is below 'every: 8 steps', so workers would wait for ever; "
            "raise it");
}

}  // namespace
}  // namespace isthmus::core
