#include "apps/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace isthmus::apps {
namespace {

core::JobConfig two_regions() {
  core::JobConfig config;
  config.job = "test";
  config.regions.resize(2);
  config.regions[0].name = "frankfurt";
  config.regions[1].name = "virginia";
  return config;
}

TEST(SummaryTest, DenseBytesAddUpToTwiceTheOtherRegionsForEachStep) {
  constexpr std::uint64_t kElements = 235146;
  constexpr Step kSteps = 3000;
  for (const std::uint64_t regions : {2u, 3u, 4u, 5u}) {
    const std::uint64_t links = regions * (regions - 1);
    const std::uint64_t all = 2 * (regions - 1) * 4 * kElements * kSteps;
    EXPECT_NEAR(static_cast<double>(links * dense_bytes_per_link(regions, kElements, kSteps)),
                static_cast<double>(all), static_cast<double>(links));
  }
  EXPECT_EQ(dense_bytes_per_link(2, kElements, kSteps), 4 * kElements * kSteps);
  EXPECT_EQ(dense_bytes_per_link(1, kElements, kSteps), 0u);
}

TEST(SummaryTest, TakesTheServersLastWords) {
  JobStatus status;
  status.clock = 100;
  status.samples = 6400;
  status.lan_bytes = 77;
  status.staleness = {50, 30, 15, 5};
  status.refused_not_finite = 2;
  DirectedLink link;
  link.from = "frankfurt";
  link.to = "virginia";
  link.bytes = 1000;
  status.links = {link};
  const Summary summary = summarise(two_regions(), status, 10, 2.0);
  EXPECT_EQ(summary.steps, 100u);
  EXPECT_DOUBLE_EQ(summary.samples_per_second, 3200);
  EXPECT_EQ(summary.staleness_p50, 0u);
  EXPECT_EQ(summary.staleness_p99, 3u);
  EXPECT_EQ(summary.lan_bytes, 77u);
  EXPECT_EQ(summary.refused_not_finite, 2u);
  ASSERT_EQ(summary.links.size(), 1u);
  EXPECT_EQ(summary.links[0].bytes, 1000u);
  EXPECT_EQ(summary.links[0].dense_bytes, 4u * 10 * 100);
}

TEST(SummaryTest, TheJsonHasTheDocumentedKeysInOrder) {
  Summary summary;
  summary.accuracy = 0.89;
  summary.region_accuracy = {{"frankfurt", 0.88}};
  summary.links = {{"frankfurt", "virginia", 5, 500}};
  const auto json = nlohmann::ordered_json::parse(to_json(summary));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  const std::vector<std::string> expected = {"schema",
                                             "status",
                                             "seconds",
                                             "steps",
                                             "accuracy",
                                             "region_accuracy",
                                             "loss",
                                             "samples_per_second",
                                             "exposed_communication",
                                             "staleness",
                                             "wan",
                                             "lan_bytes",
                                             "max_replica_difference",
                                             "largest_parameter",
                                             "workers_lost",
                                             "restarts",
                                             "refused_not_finite"};
  EXPECT_EQ(keys, expected);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["wan"]["frankfurt->virginia"]["bytes"], 5);
  EXPECT_EQ(json["wan"]["frankfurt->virginia"]["dense_bytes"], 500);
  EXPECT_EQ(json["region_accuracy"]["frankfurt"], 0.88);
  EXPECT_TRUE(json["loss"].is_null());  // Not judged is not 0.
}

TEST(SummaryTest, TheTableComparesWithDenseOnlyWhereThereIsSomethingToCompare) {
  Summary summary;
  summary.links = {{"frankfurt", "virginia", 5, 500}, {"virginia", "frankfurt", 7, 0}};
  const std::string table = to_table(summary);
  EXPECT_NE(table.find("WAN frankfurt -> virginia   5 B  (1/100 of the 500 B of synchronous dense fp32)"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("WAN virginia -> frankfurt   7 B\n"), std::string::npos) << table;
  EXPECT_EQ(table.find("accuracy"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::apps
