#include "apps/local_job.h"

#include <gtest/gtest.h>

// Starting and ending whole jobs is what the integration tests do.

namespace isthmus::apps {
namespace {

TEST(LocalJobTest, EveryShardOfEveryServerHasAnAddressInOrder) {
  core::JobConfig config;
  config.regions.resize(2);
  config.regions[0].servers.resize(2);
  config.regions[0].servers[0].lan = {"a.example", 7100};
  config.regions[0].servers[0].shards = 2;
  config.regions[0].servers[1].lan = {"b.example", 7100};
  config.regions[1].servers.resize(1);
  config.regions[1].servers[0].lan = {"::1", 7200};
  std::vector<std::string> addresses;
  for (const core::Address& address : shard_addresses(config)) addresses.push_back(address.to_string());
  const std::vector<std::string> expected = {"a.example:7100", "a.example:7101", "b.example:7100",
                                             "[::1]:7200"};
  EXPECT_EQ(addresses, expected);
}

}  // namespace
}  // namespace isthmus::apps
