#include "apps/watch_shards.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace isthmus::apps {
namespace {

// Port 1 of this machine: nobody is there. A running server: tests/integration/watching_test.py.
const core::Address kNobody{"127.0.0.1", 1};

TEST(WatchShardsTest, AShardThatDoesNotAnswerIsUnhealthy) {
  const HttpAnswer answer = watch_shards({kNobody})("/healthz");
  EXPECT_EQ(answer.status, 503u);
  EXPECT_EQ(answer.type, "application/json");
  const auto json = nlohmann::json::parse(answer.body);
  EXPECT_EQ(json["status"], "unhealthy");
  EXPECT_TRUE(json["phase"].is_null());
  ASSERT_EQ(json["silent"].size(), 1u);
  EXPECT_NE(json["silent"][0].get<std::string>().find("127.0.0.1:1"), std::string::npos) << answer.body;
}

TEST(WatchShardsTest, MetricsOfASilentServerAreThoseOfItsProcess) {
  const HttpAnswer answer = watch_shards({kNobody})("/metrics");
  EXPECT_EQ(answer.status, 200u);
  EXPECT_NE(answer.body.find("process_cpu_seconds_total "), std::string::npos) << answer.body;
  EXPECT_EQ(answer.body.find("isthmus_"), std::string::npos) << answer.body;
}

TEST(WatchShardsTest, OtherPathsAreNotThere) { EXPECT_EQ(watch_shards({kNobody})("/").status, 404u); }

TEST(WatchShardsTest, AServersOwnShardsAreWhereItHasBoundThem) {
  core::ServerConfig server;
  server.lan = {"frankfurt.example", 7100};
  server.lan_bind = {"0.0.0.0", 7500};
  server.shards = 2;
  EXPECT_EQ(own_shards(server), (std::vector<core::Address>{{"127.0.0.1", 7500}, {"127.0.0.1", 7501}}));
  server.lan_bind.host = "::";
  EXPECT_EQ(own_shards(server)[0], (core::Address{"::1", 7500}));
  server.lan_bind.host = "10.0.0.5";
  EXPECT_EQ(own_shards(server)[1], (core::Address{"10.0.0.5", 7501}));
}

}  // namespace
}  // namespace isthmus::apps
