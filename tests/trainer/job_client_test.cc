#include "trainer/job_client.h"

#include <gtest/gtest.h>

namespace isthmus::trainer {
namespace {

TEST(JobClientTest, SaysWhatTheConfigSays) {
  core::JobConfig config;
  config.job = "job";
  config.regions.resize(1);
  config.regions[0].name = "frankfurt";
  config.regions[0].servers.resize(2);
  config.regions[0].servers[1].lan = {"::1", 7110};
  config.regions[0].servers[1].shards = 3;
  config.compression.lan.kind = core::CodecKind::kInt8;
  config.slice_elements = 99;
  config.limits.operation_timeout = std::chrono::seconds(7);
  const std::vector<TensorSpec> table = {{"a", {2, 3}}};
  const auto client = client_config(config, "frankfurt", 4, table, {});
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(client->job, "job");
  EXPECT_EQ(client->region, "frankfurt");
  EXPECT_EQ(client->worker, 4u);
  ASSERT_EQ(client->servers.size(), 2u);
  EXPECT_EQ(client->servers[1].host, "::1");
  EXPECT_EQ(client->servers[1].port, 7110);
  EXPECT_EQ(client->servers[1].shards, 3u);
  EXPECT_EQ(client->tensors, table);
  EXPECT_EQ(client->slice_elements, 99u);
  EXPECT_EQ(client->codec, GradientCodec::kInt8);
  EXPECT_EQ(client->timeout, std::chrono::seconds(7));
  EXPECT_EQ(client_config(config, "paris", 0, table, {}).status().code(), ErrorCode::kInvalidArgument);
}

TEST(TensorSetTest, HasAViewOfEachTensorInOrder) {
  const std::vector<TensorSpec> table = {{"a", {2, 3}}, {"b", {}}};
  TensorSet set(table);
  ASSERT_EQ(set.views().size(), 2u);
  EXPECT_EQ(set.views()[0].size(), 6u);
  EXPECT_EQ(set.views()[1].size(), 1u);
  set.views()[1][0] = 5.0f;
  EXPECT_EQ(set.gradients()[1].values[0], 5.0f);
  EXPECT_EQ(set.parameters()[1].id.value, 1u);
  EXPECT_EQ(set.const_views()[1].data(), set.views()[1].data());
}

}  // namespace
}  // namespace isthmus::trainer
