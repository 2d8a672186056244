#include "core/job_config.h"

#include <gtest/gtest.h>

namespace isthmus::core {
namespace {

TEST(JobConfigTest, ReadsAddresses) {
  EXPECT_EQ(*parse_address("frankfurt.example:7100"), (Address{"frankfurt.example", 7100}));
  EXPECT_EQ(*parse_address("10.0.0.5:1"), (Address{"10.0.0.5", 1}));
  EXPECT_EQ(*parse_address("[::1]:65535"), (Address{"::1", 65535}));
  EXPECT_EQ(*parse_address("[fe80::1%eth0]:80"), (Address{"fe80::1%eth0", 80}));
}

TEST(JobConfigTest, WritesAddressesAsTheyAreRead) {
  for (const char* text : {"frankfurt.example:7100", "10.0.0.5:1", "[::1]:65535"}) {
    EXPECT_EQ(parse_address(text)->to_string(), text);
  }
}

TEST(JobConfigTest, RefusesWhatIsNoAddress) {
  for (std::string_view text : {"", ":", "host", "host:", ":7100", "host:0", "host:65536", "host:7100x",
                                "host:-1", "::1:7100", "[::1]", "[::1", "[nonsense]:7100", "300.1.1.1:7100",
                                "a b:7100", "1.2.3:7100", "host:99999999999999999999"}) {
    EXPECT_FALSE(parse_address(text).ok()) << text;
  }
  EXPECT_FALSE(parse_address(std::string_view("[::1\0x]:7100", 12)).ok());
  EXPECT_FALSE(parse_address(std::string(300, 'a') + ":7100").ok());
}

TEST(JobConfigTest, SaysHowAnIpv6AddressIsWritten) {
  EXPECT_EQ(parse_address("::1:7100").status().message(),
            "'::1:7100' has more than one ':'; put an IPv6 address in brackets, for example [::1]:7100");
}

TEST(JobConfigTest, KnowsAddressesThatNobodyCanReach) {
  EXPECT_TRUE((Address{"0.0.0.0", 1}).is_wildcard());
  EXPECT_TRUE((Address{"::", 1}).is_wildcard());
  EXPECT_FALSE((Address{"::1", 1}).is_wildcard());
}

TEST(JobConfigTest, NamesEveryEnumerator) {
  EXPECT_EQ(to_string(CommitPolicyKind::kAsync), "async");
  EXPECT_EQ(to_string(OptimizerKind::kAdamw), "adamw");
  EXPECT_EQ(to_string(ScheduleKind::kStep), "step");
  EXPECT_EQ(to_string(SyncStrategy::kLockstep), "lockstep");
  EXPECT_EQ(to_string(RegionWeight::kSamples), "samples");
  EXPECT_EQ(to_string(HardBoundAction::kContinue), "continue");
  EXPECT_EQ(to_string(CodecKind::kInt8), "int8");
  EXPECT_EQ(to_string(CodecKind::kRandk), "randk");
  EXPECT_EQ(to_string(KeptValues::kFp16), "fp16");
  EXPECT_EQ(to_string(Rounding::kStochastic), "stochastic");
  EXPECT_EQ(to_string(SplitKind::kDirichlet), "dirichlet");
}

TEST(JobConfigTest, FindsRegionsAndCountsTheirShards) {
  JobConfig config;
  config.regions.resize(2);
  config.regions[0].name = "frankfurt";
  config.regions[1].name = "virginia";
  config.regions[1].servers.resize(2);
  config.regions[1].servers[0].shards = 2;
  config.regions[1].servers[1].shards = 3;
  EXPECT_EQ(config.find_region("virginia"), &config.regions[1]);
  EXPECT_EQ(config.find_region("tokyo"), nullptr);
  EXPECT_EQ(config.regions[1].shards(), 5u);
}

}  // namespace
}  // namespace isthmus::core
