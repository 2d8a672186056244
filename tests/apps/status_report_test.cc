#include "apps/status_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace isthmus::apps {
namespace {

proto::StatusReply reply(const std::string& region, std::uint32_t shard, std::uint64_t clock) {
  proto::StatusReply reply;
  reply.set_region(region);
  proto::ShardStatus& says = *reply.mutable_shard();
  says.set_shard(shard);
  says.set_phase(proto::PHASE_TRAINING);
  says.set_clock(clock);
  says.set_newest_round(clock / 8);
  says.set_commits(5 * clock);
  says.set_samples(128 * clock);
  says.set_received_bytes(3 << 20);
  says.set_sent_bytes(2 << 20);
  return reply;
}

void add_worker(proto::StatusReply& reply, std::uint32_t worker, std::uint64_t step, std::uint64_t lease_ms,
                bool done) {
  proto::WorkerStatus& entry = *reply.mutable_shard()->add_workers();
  entry.set_worker(worker);
  entry.set_step(step);
  entry.set_lease_left_ms(lease_ms);
  entry.set_done(done);
}

// Frankfurt's second shard is silent; rio has one shard, and waits.
StatusView view() {
  core::JobConfig config;
  config.regions.resize(2);
  config.regions[0].name = "frankfurt";
  config.regions[0].servers.resize(1);
  config.regions[0].servers[0].shards = 2;
  config.regions[1].name = "rio";
  config.regions[1].servers.resize(1);

  proto::StatusReply frankfurt = reply("frankfurt", 0, 1200);
  add_worker(frankfurt, 0, 1200, 9800, false);
  add_worker(frankfurt, 1, 1204, 0, false);
  proto::StepTimes& times = *frankfurt.mutable_shard()->mutable_workers(0)->mutable_times();
  times.set_compute_us(7'000'000);
  times.set_encode_us(100'000);
  times.set_exchange_us(2'000'000);
  times.set_barrier_us(900'000);
  for (const std::uint64_t count : {90, 9, 1}) frankfurt.mutable_shard()->add_staleness(count);
  proto::LinkStatus& link = *frankfurt.add_links();
  link.set_region("rio");
  link.set_up(true);
  link.set_sent_bytes(1 << 20);
  link.set_rtt_us(81500);
  link.set_reconnects(2);
  proto::StatusReply rio = reply("rio", 0, 1190);
  add_worker(rio, 0, 1190, 0, true);
  rio.mutable_shard()->set_halted(true);
  rio.mutable_shard()->set_refused_not_finite(1);
  rio.mutable_shard()->set_refused_malformed(2);
  rio.set_last_error("worker 0: the gradient of 'w' has NaN");
  proto::LinkStatus& back = *rio.add_links();
  back.set_region("frankfurt");
  back.set_last_error("read: connection reset");

  StatusView view;
  view.job = "demo";
  view.status = job_status(config, std::vector<proto::StatusReply>{frankfurt, rio});
  view.silent = {{"frankfurt/1", "127.0.0.1:7101: no answer"}};
  return view;
}

TEST(StatusReportTest, ReadsAsTables) {
  EXPECT_EQ(status_text(view()), R"(job demo: training, step 1,190, 305,920 samples
2 of 3 shards answered; staleness p50 0, p99 1; 3 contributions refused, 1 of them not finite

region     server  shard  phase       step  round  commits  samples   LAN in  LAN out
frankfurt       0      0  training   1,200    150    6,000  153,600  3.0 MiB  2.0 MiB
frankfurt       0      1  no answer
rio             0      0  halted     1,190    148    5,950  152,320  3.0 MiB  2.0 MiB

region     worker   step  state   lease  refused  compute  encode  exchange  barrier
frankfurt       0  1,200  living  9.8 s        0     70 %     1 %      20 %      9 %
frankfurt       1  1,204  gone        -        0        -       -         -        -
rio             0  1,190  done        -        0        -       -         -        -

link              up     RTT    bytes  now  reconnects  refused
frankfurt -> rio  yes  82 ms  1.0 MiB    -           2        0
rio -> frankfurt  no       -      0 B    -           0        0

frankfurt/1 did not answer: 127.0.0.1:7101: no answer
rio/0, last error: worker 0: the gradient of 'w' has NaN
rio -> frankfurt, last error: read: connection reset
)");
}

TEST(StatusReportTest, RatesComeWithASecondLook) {
  StatusView now = view();
  now.rates = Rates{410.4, 52531.2, {400e3, 0}};
  const std::string text = status_text(now);
  EXPECT_NE(text.find("305,920 samples, 410 steps/s, 52,531 samples/s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  400 kbit/s"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(status_json(now));
  EXPECT_DOUBLE_EQ(json["steps_per_second"], 410.4);
  EXPECT_DOUBLE_EQ(json["links"]["frankfurt->rio"]["bits_per_second"], 400e3);
}

TEST(StatusReportTest, OneRegionAlone) {
  StatusView only = view();
  only.region = "rio";
  const std::string text = status_text(only);
  EXPECT_NE(text.find("1 of 1 shard answered"), std::string::npos) << text;
  EXPECT_EQ(text.find("frankfurt       0"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(status_json(only));
  ASSERT_EQ(json["regions"].size(), 1u);
  EXPECT_EQ(json["regions"][0]["name"], "rio");
  EXPECT_EQ(json["shards"], 1);
}

TEST(StatusReportTest, NobodyAnswers) {
  StatusView nobody;
  nobody.job = "demo";
  core::JobConfig config;
  config.regions.resize(1);
  config.regions[0].name = "rio";
  config.regions[0].servers.resize(1);
  nobody.status = job_status(config, {});
  nobody.silent = {{"rio/0", "127.0.0.1:7100: no answer"}};
  EXPECT_EQ(status_text(nobody),
            "job demo: no shard answers\n\nrio/0 did not answer: 127.0.0.1:7100: no answer\n");
  const auto json = nlohmann::json::parse(status_json(nobody));
  EXPECT_TRUE(json["phase"].is_null());
  EXPECT_TRUE(json["step"].is_null());
  EXPECT_TRUE(json["staleness"]["p50"].is_null());
  EXPECT_EQ(json["regions"][0]["shards"][0],
            nlohmann::json({{"server", 0}, {"shard", 0}, {"answered", false}}));
}

TEST(StatusReportTest, IsOneObjectForPrograms) {
  const std::string text = status_json(view());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["job"], "demo");
  EXPECT_EQ(json["phase"], "training");
  EXPECT_EQ(json["step"], 1190);
  EXPECT_EQ(json["shards"], 3);
  EXPECT_EQ(json["shards_answered"], 2);
  EXPECT_EQ(json["staleness"]["p50"], 0);
  EXPECT_EQ(json["staleness"]["p99"], 1);
  EXPECT_EQ(json["lan_bytes"], 2 * (5 << 20));
  EXPECT_EQ(json["wan_bytes"], 1 << 20);
  EXPECT_TRUE(json["steps_per_second"].is_null());
  EXPECT_EQ(json["regions"][0]["shards"][0]["commits"], 6000);
  EXPECT_EQ(json["regions"][0]["shards"][1]["answered"], false);
  EXPECT_DOUBLE_EQ(json["regions"][0]["workers"][0]["lease_seconds"], 9.8);
  EXPECT_EQ(json["regions"][1]["halted"], true);
  EXPECT_EQ(json["regions"][1]["workers"][0]["done"], true);
  EXPECT_EQ(json["regions"][1]["shards"][0]["refused_malformed"], 2);
  const auto& link = json["links"]["frankfurt->rio"];
  EXPECT_DOUBLE_EQ(link["rtt_seconds"], 0.0815);
  EXPECT_EQ(link["up"], 1);
  EXPECT_TRUE(link["last_error"].is_null());
  EXPECT_EQ(json["links"]["rio->frankfurt"]["last_error"], "read: connection reset");
  EXPECT_EQ(json["silent"][0]["shard"], "frankfurt/1");
  EXPECT_EQ(json["last_errors"][0]["message"], "worker 0: the gradient of 'w' has NaN");
}

TEST(StatusReportTest, APeersWordsMayBeAnyBytes) {
  StatusView hostile = view();
  hostile.status.last_errors = {{"rio/0", "\xff\x01\""}};
  EXPECT_TRUE(nlohmann::json::accept(status_json(hostile)));
  hostile.status.last_errors = {{"rio/0", "\x1b[2Jgone\nfine\x7f"}};
  EXPECT_NE(status_text(hostile).find("rio/0, last error: ?[2Jgone?fine?\n"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::apps
