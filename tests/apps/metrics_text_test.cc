#include "apps/metrics_text.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <vector>

namespace isthmus::apps {
namespace {

proto::StatusReply reply(std::uint32_t shard) {
  proto::StatusReply reply;
  reply.set_job("demo");
  reply.set_region("rio");
  reply.set_server(2);
  proto::ShardStatus& says = *reply.mutable_shard();
  says.set_shard(shard);
  says.set_phase(proto::PHASE_TRAINING);
  says.set_clock(1200);
  says.set_refused_malformed(3);
  for (const std::uint64_t count : {4, 3, 2, 1}) says.add_staleness(count);
  proto::WorkerStatus& worker = *says.add_workers();
  worker.set_worker(7);
  worker.set_step(1201);
  worker.set_lease_left_ms(900);
  worker.mutable_times()->set_exchange_us(2'500'000);
  if (shard > 0) return reply;
  proto::LinkStatus& link = *reply.add_links();
  link.set_region("oslo");
  link.set_up(true);
  link.set_sent_bytes(1 << 20);
  link.set_rtt_us(250'000);
  return reply;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void expect_line(const std::string& text, const std::string& line) {
  EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << "\n\nis not in\n\n" << text;
}

TEST(MetricsTextTest, SaysWhatTheShardsSay) {
  const std::string text = metrics_text(std::vector<proto::StatusReply>{reply(0), reply(1)});
  expect_line(text, R"(isthmus_step{job="demo",region="rio",server="2",shard="0"} 1200)");
  expect_line(text, R"(isthmus_step{job="demo",region="rio",server="2",shard="1"} 1200)");
  expect_line(text, R"(isthmus_phase{job="demo",region="rio",server="2",shard="0",phase="training"} 1)");
  expect_line(text, R"(isthmus_phase{job="demo",region="rio",server="2",shard="0",phase="drained"} 0)");
  expect_line(text,
              R"(isthmus_refused_total{job="demo",region="rio",server="2",shard="1",why="malformed"} 3)");
  expect_line(text, R"(isthmus_worker_living{job="demo",region="rio",server="2",worker="7"} 1)");
  expect_line(
      text,
      R"(isthmus_worker_seconds_total{job="demo",region="rio",server="2",worker="7",part="exchange"} 2.5)");
  expect_line(
      text,
      R"(isthmus_link_sent_bytes_total{job="demo",region="rio",server="2",peer_region="oslo",peer_server="0"} 1048576)");
  expect_line(
      text,
      R"(isthmus_link_rtt_seconds{job="demo",region="rio",server="2",peer_region="oslo",peer_server="0"} 0.25)");
}

// Cumulative, as Prometheus wants them: 4 of 0, 3 of 1, 2 of 2, 1 of 3.
TEST(MetricsTextTest, AHistogramIsCumulative) {
  const std::string text = metrics_text(std::vector<proto::StatusReply>{reply(0)});
  const std::string labels = R"({job="demo",region="rio",server="2",shard="0")";
  expect_line(text, "isthmus_staleness_bucket" + labels + R"(,le="0"} 4)");
  expect_line(text, "isthmus_staleness_bucket" + labels + R"(,le="1"} 7)");
  expect_line(text, "isthmus_staleness_bucket" + labels + R"(,le="2"} 9)");
  expect_line(text, "isthmus_staleness_bucket" + labels + R"(,le="4"} 10)");
  expect_line(text, "isthmus_staleness_bucket" + labels + R"(,le="+Inf"} 10)");
  expect_line(text, "isthmus_staleness_sum" + labels + "} 10");
  expect_line(text, "isthmus_staleness_count" + labels + "} 10");
}

// The rules of the format that a scraper rejects a whole page for.
TEST(MetricsTextTest, EachMetricStandsTogetherAndEachSampleOnce) {
  const std::string text =
      metrics_text(std::vector<proto::StatusReply>{reply(0), reply(1)}) + process_metrics();
  std::set<std::string> families, samples;
  std::string family;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family;
      EXPECT_GT(line.size(), 8 + family.size()) << "no help for " << family;
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(line.starts_with("# TYPE " + family + " ")) << line;
    } else {
      EXPECT_TRUE(line.starts_with(family)) << line;
      EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
  }
  EXPECT_TRUE(families.contains("process_resident_memory_bytes"));
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(MetricsTextTest, APeersWordsCannotBreakTheFormat) {
  proto::StatusReply hostile = reply(0);
  hostile.set_region("a\"} 1\nb\\");
  const std::string text = metrics_text(std::vector<proto::StatusReply>{hostile});
  expect_line(text, R"(isthmus_step{job="demo",region="a\"} 1\nb\\",server="2",shard="0"} 1200)");
}

}  // namespace
}  // namespace isthmus::apps
