#include "apps/job_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace isthmus::apps {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Frankfurt: two servers of two shards and of one. Virginia: one of one.
core::JobConfig two_regions() {
  core::JobConfig config;
  config.job = "test";
  config.regions.resize(2);
  config.regions[0].name = "frankfurt";
  config.regions[0].servers.resize(2);
  config.regions[0].servers[0].shards = 2;
  config.regions[1].name = "virginia";
  config.regions[1].servers.resize(1);
  return config;
}

proto::StatusReply reply(const std::string& region, std::uint32_t shard, proto::Phase phase,
                         std::uint64_t clock) {
  proto::StatusReply reply;
  reply.set_region(region);
  reply.mutable_shard()->set_shard(shard);
  reply.mutable_shard()->set_phase(phase);
  reply.mutable_shard()->set_clock(clock);
  return reply;
}

void add_worker(proto::StatusReply& reply, std::uint32_t worker, std::uint64_t step, std::uint64_t lease_ms,
                std::uint64_t refused, bool done) {
  proto::WorkerStatus* entry = reply.mutable_shard()->add_workers();
  entry->set_worker(worker);
  entry->set_step(step);
  entry->set_lease_left_ms(lease_ms);
  entry->set_refused(refused);
  entry->set_done(done);
}

proto::LinkStatus* add_link(proto::StatusReply& reply, const std::string& region, bool up, std::uint64_t sent,
                            std::uint64_t received) {
  proto::LinkStatus* link = reply.add_links();
  link->set_region(region);
  link->set_up(up);
  link->set_sent_bytes(sent);
  link->set_received_bytes(received);
  return link;
}

TEST(JobStatusTest, NobodyAnswered) {
  const JobStatus job = job_status(two_regions(), {});
  EXPECT_EQ(job.shards, 4u);
  EXPECT_EQ(job.answered, 0u);
  ASSERT_EQ(job.regions.size(), 2u);
  EXPECT_EQ(job.regions[0].name, "frankfurt");
  ASSERT_EQ(job.regions[0].shards.size(), 3u);
  EXPECT_EQ(job.regions[0].shards[2].server, 1u);
  EXPECT_EQ(job.regions[0].shards[2].shard, 2u);
  EXPECT_FALSE(job.regions[0].shards[2].says);
  ASSERT_EQ(job.links.size(), 2u);
  EXPECT_EQ(job.links[1].from, "virginia");
  EXPECT_EQ(job.links[1].to, "frankfurt");
  EXPECT_EQ(job.links[1].links, 0u);
  EXPECT_EQ(percentile(job.staleness, 0.5), std::nullopt);
}

TEST(JobStatusTest, ARegionIsAsFarAsItsSlowestShardThatAnswered) {
  const std::vector<proto::StatusReply> replies = {reply("frankfurt", 0, proto::PHASE_DRAINING, 90),
                                                   reply("frankfurt", 2, proto::PHASE_TRAINING, 80),
                                                   reply("virginia", 0, proto::PHASE_DRAINED, 70)};
  const JobStatus job = job_status(two_regions(), replies);
  EXPECT_EQ(job.answered, 3u);
  EXPECT_EQ(job.regions[0].answered, 2u);
  EXPECT_EQ(job.regions[0].phase, proto::PHASE_TRAINING);
  EXPECT_EQ(job.regions[0].clock, 80u);
  EXPECT_EQ(job.regions[1].phase, proto::PHASE_DRAINED);
  EXPECT_EQ(job.phase, proto::PHASE_TRAINING);
  EXPECT_EQ(job.clock, 70u);
}

TEST(JobStatusTest, ASilentRegionDoesNotHoldTheClockAtZero) {
  const std::vector<proto::StatusReply> replies = {reply("virginia", 0, proto::PHASE_TRAINING, 70)};
  const JobStatus job = job_status(two_regions(), replies);
  EXPECT_EQ(job.clock, 70u);
  EXPECT_EQ(job.phase, proto::PHASE_TRAINING);
}

TEST(JobStatusTest, SamplesCountOnceLanBytesOfEveryShard) {
  std::vector<proto::StatusReply> replies = {reply("frankfurt", 0, proto::PHASE_TRAINING, 1),
                                             reply("frankfurt", 1, proto::PHASE_TRAINING, 1),
                                             reply("virginia", 0, proto::PHASE_TRAINING, 1)};
  const std::uint64_t samples[] = {640, 704, 100};
  for (std::size_t i = 0; i < replies.size(); ++i) {
    replies[i].mutable_shard()->set_samples(samples[i]);
    replies[i].mutable_shard()->set_received_bytes(1000 * (i + 1));
    replies[i].mutable_shard()->set_sent_bytes(10 * (i + 1));
  }
  const JobStatus job = job_status(two_regions(), replies);
  EXPECT_EQ(job.regions[0].samples, 704u);
  EXPECT_EQ(job.samples, 804u);
  EXPECT_EQ(job.regions[0].lan_bytes, 3030u);
  EXPECT_EQ(job.lan_bytes, 6060u);
}

TEST(JobStatusTest, AWorkerIsWhatAllItsShardsSay) {
  std::vector<proto::StatusReply> replies = {reply("frankfurt", 0, proto::PHASE_TRAINING, 9),
                                             reply("frankfurt", 1, proto::PHASE_TRAINING, 9)};
  add_worker(replies[0], 1, 9, 0, 0, true);
  add_worker(replies[0], 0, 10, 900, 1, true);
  add_worker(replies[1], 0, 9, 700, 3, false);
  replies[1].mutable_shard()->set_halted(true);
  // The second shard has restarted since.
  replies[0].mutable_shard()->mutable_workers(1)->mutable_times()->set_compute_us(6'000'000);
  replies[0].mutable_shard()->mutable_workers(1)->mutable_times()->set_encode_us(500'000);
  replies[0].mutable_shard()->mutable_workers(1)->mutable_times()->set_exchange_us(1'000'000);
  replies[0].mutable_shard()->mutable_workers(1)->mutable_times()->set_barrier_us(500'000);
  replies[1].mutable_shard()->mutable_workers(0)->mutable_times()->set_compute_us(1'000'000);
  replies[0].mutable_shard()->mutable_workers(0)->mutable_times()->set_barrier_us(2'000'000);
  const JobStatus job = job_status(two_regions(), replies);
  const std::vector<WorkerState>& workers = job.regions[0].workers;
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].worker, 0u);
  EXPECT_EQ(workers[0].step, 9u);
  EXPECT_EQ(workers[0].lease, milliseconds(700));
  EXPECT_EQ(workers[0].refused, 3u);
  EXPECT_FALSE(workers[0].done);
  EXPECT_EQ(workers[1].worker, 1u);
  EXPECT_TRUE(workers[1].done);
  EXPECT_TRUE(job.regions[0].halted);
  EXPECT_FALSE(job.regions[1].halted);
  EXPECT_EQ(workers[0].times.compute, 6.0);
  EXPECT_EQ(workers[0].times.exposed(), 0.25);
  EXPECT_EQ(job.times.all(), 10.0);
  EXPECT_EQ(job.times.barrier, 2.5);
  EXPECT_EQ(job.times.exposed(), 0.4);
  EXPECT_EQ(WorkerTimes().exposed(), 0.0);
}

TEST(JobStatusTest, LinksOfAllServersAddUpInEachDirection) {
  std::vector<proto::StatusReply> replies = {reply("frankfurt", 0, proto::PHASE_TRAINING, 1),
                                             reply("frankfurt", 2, proto::PHASE_TRAINING, 1),
                                             reply("virginia", 0, proto::PHASE_TRAINING, 1)};
  proto::LinkStatus* first = add_link(replies[0], "virginia", true, 1000, 500);
  first->set_rtt_us(80000);
  first->set_reconnects(2);
  proto::LinkStatus* second = add_link(replies[1], "virginia", false, 200, 100);
  second->set_rtt_us(90000);
  second->set_refused(1);
  second->set_last_error("connection reset");
  add_link(replies[2], "frankfurt", true, 400, 1000);
  add_link(replies[2], "frankfurt", true, 90, 190);
  const JobStatus job = job_status(two_regions(), replies);
  const DirectedLink& there = job.links[0];
  EXPECT_EQ(there.from, "frankfurt");
  EXPECT_EQ(there.links, 2u);
  EXPECT_EQ(there.up, 1u);
  EXPECT_EQ(there.bytes, 1200u);
  EXPECT_EQ(there.rtt, microseconds(90000));
  EXPECT_EQ(there.reconnects, 2u);
  EXPECT_EQ(there.refused, 1u);
  EXPECT_EQ(there.last_error, "connection reset");
  EXPECT_EQ(job.links[1].bytes, 600u);  // Frankfurt got more than virginia, restarted, knows it sent.
  EXPECT_EQ(job.wan_bytes, 1800u);
}

TEST(JobStatusTest, HistogramsAndRefusalsAddUp) {
  std::vector<proto::StatusReply> replies = {reply("frankfurt", 0, proto::PHASE_TRAINING, 1),
                                             reply("virginia", 0, proto::PHASE_TRAINING, 1)};
  for (const std::uint64_t count : {5, 2}) replies[0].mutable_shard()->add_staleness(count);
  for (const std::uint64_t count : {1, 1, 0, 1}) replies[1].mutable_shard()->add_staleness(count);
  replies[0].mutable_shard()->set_refused_not_finite(2);
  replies[1].mutable_shard()->set_refused_not_finite(1);
  replies[1].mutable_shard()->set_refused_malformed(4);
  replies[1].set_last_error("worker 1: NaN");
  const JobStatus job = job_status(two_regions(), replies);
  EXPECT_EQ(job.staleness, (std::vector<std::uint64_t>{6, 3, 0, 1}));
  EXPECT_EQ(job.refused_not_finite, 3u);
  EXPECT_EQ(job.refused_malformed, 4u);
  ASSERT_EQ(job.last_errors.size(), 1u);
  EXPECT_EQ(job.last_errors[0].first, "virginia/0");
  EXPECT_EQ(job.last_errors[0].second, "worker 1: NaN");
}

TEST(JobStatusTest, ALaterAnswerReplacesAnEarlierOneAndStrangersAreLeftOut) {
  std::vector<proto::StatusReply> replies = {
      reply("virginia", 0, proto::PHASE_TRAINING, 5), reply("virginia", 0, proto::PHASE_TRAINING, 7),
      reply("virginia", 1, proto::PHASE_TRAINING, 1), reply("tokyo", 0, proto::PHASE_TRAINING, 1)};
  const JobStatus job = job_status(two_regions(), replies);
  EXPECT_EQ(job.answered, 1u);
  EXPECT_EQ(job.clock, 7u);
}

TEST(JobStatusTest, PercentilesAreTheNearestRank) {
  const std::vector<std::uint64_t> histogram = {50, 49, 0, 1};
  EXPECT_EQ(percentile(histogram, 0.0), 0u);
  EXPECT_EQ(percentile(histogram, 0.5), 0u);
  EXPECT_EQ(percentile(histogram, 0.51), 1u);
  EXPECT_EQ(percentile(histogram, 0.99), 1u);
  EXPECT_EQ(percentile(histogram, 1.0), 3u);
  EXPECT_EQ(percentile(std::vector<std::uint64_t>{0, 0}, 0.5), std::nullopt);
  EXPECT_EQ(percentile(std::vector<std::uint64_t>{0, 0, 3}, 0.5), 2u);
}

TEST(JobStatusTest, PhasesHaveNames) {
  EXPECT_EQ(to_string(proto::PHASE_WAITING), "waiting");
  EXPECT_EQ(to_string(proto::PHASE_TRAINING), "training");
  EXPECT_EQ(to_string(proto::PHASE_DRAINING), "draining");
  EXPECT_EQ(to_string(proto::PHASE_DRAINED), "drained");
}

}  // namespace
}  // namespace isthmus::apps
