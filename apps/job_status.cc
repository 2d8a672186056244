#include "apps/job_status.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace isthmus::apps {
namespace {

// The newest answer of each shard, by region and index; and of each server's first, which knows the links.
using Answers = std::map<std::pair<std::size_t, std::uint32_t>, const proto::StatusReply*>;

Answers by_shard(const core::JobConfig& config, std::span<const proto::StatusReply> replies) {
  Answers answers;
  for (const proto::StatusReply& reply : replies) {
    const core::RegionConfig* region = config.find_region(reply.region());
    if (region == nullptr || reply.shard().shard() >= region->shards()) continue;
    answers[{static_cast<std::size_t>(region - config.regions.data()), reply.shard().shard()}] = &reply;
  }
  return answers;
}

WorkerTimes times_of(const proto::StepTimes& times) {
  const auto seconds = [](std::uint64_t us) { return static_cast<double>(us) * 1e-6; };
  return {seconds(times.compute_us()), seconds(times.encode_us()), seconds(times.exchange_us()),
          seconds(times.barrier_us())};
}

void add_workers(const proto::ShardStatus& shard, std::map<std::uint32_t, WorkerState>& workers) {
  for (const proto::WorkerStatus& here : shard.workers()) {
    const std::chrono::milliseconds lease(here.lease_left_ms());
    const WorkerTimes times = times_of(here.times());
    const auto [entry, fresh] = workers.try_emplace(
        here.worker(), WorkerState{here.worker(), here.step(), lease, here.refused(), here.done(), times});
    if (fresh) continue;
    WorkerState& worker = entry->second;
    // It tells all shards the same; one that has restarted knows less of it.
    if (times.all() > worker.times.all()) worker.times = times;
    worker.step = std::min<Step>(worker.step, here.step());
    worker.lease = std::min(worker.lease, lease);
    worker.refused = std::max<std::uint64_t>(worker.refused, here.refused());
    worker.done = worker.done && here.done();
  }
}

void add_shard(const proto::ShardStatus& shard, RegionState& region) {
  region.phase = region.answered == 0 ? shard.phase() : std::min(region.phase, shard.phase());
  region.clock = region.answered == 0 ? shard.clock() : std::min<Step>(region.clock, shard.clock());
  ++region.answered;
  region.halted = region.halted || shard.halted();
  // A worker's push goes to every shard that holds something of it, so the shards count the same samples.
  region.samples = std::max<std::uint64_t>(region.samples, shard.samples());
  region.lan_bytes += shard.received_bytes() + shard.sent_bytes();
}

RegionState region_state(const core::JobConfig& config, std::size_t index, const Answers& answers) {
  RegionState region;
  region.name = config.regions[index].name;
  std::map<std::uint32_t, WorkerState> workers;
  for (std::uint32_t server = 0, shard = 0; server < config.regions[index].servers.size(); ++server) {
    for (std::uint32_t i = 0; i < config.regions[index].servers[server].shards; ++i, ++shard) {
      ShardState& state = region.shards.emplace_back(ShardState{server, shard, {}});
      const auto answer = answers.find({index, shard});
      if (answer == answers.end()) continue;
      state.says = answer->second->shard();
      add_shard(*state.says, region);
      add_workers(*state.says, workers);
    }
  }
  for (auto& [number, worker] : workers) region.workers.push_back(worker);
  return region;
}

// What `from` says about its links to `to`, and the bytes that `to` says it got: the larger counts, since
// either may be silent, or have been restarted.
DirectedLink directed_link(const core::JobConfig& config, std::size_t from, std::size_t to,
                           const Answers& answers) {
  DirectedLink link;
  link.from = config.regions[from].name;
  link.to = config.regions[to].name;
  std::uint64_t received = 0;
  for (const auto& [place, reply] : answers) {
    for (const proto::LinkStatus& here : reply->links()) {
      if (place.first == to && here.region() == link.from) received += here.received_bytes();
      if (place.first != from || here.region() != link.to) continue;
      ++link.links;
      link.up += here.up() ? 1 : 0;
      link.bytes += here.sent_bytes();
      link.reconnects += here.reconnects();
      link.refused += here.refused();
      link.rtt = std::max(link.rtt, std::chrono::microseconds(here.rtt_us()));
      if (!here.last_error().empty()) link.last_error = here.last_error();
    }
  }
  link.bytes = std::max(link.bytes, received);
  return link;
}

void add_region(const RegionState& region, JobStatus& job) {
  job.shards += region.shards.size();
  if (region.answered > 0) {
    job.phase = job.answered == 0 ? region.phase : std::min(job.phase, region.phase);
    job.clock = job.answered == 0 ? region.clock : std::min(job.clock, region.clock);
  }
  job.answered += region.answered;
  job.samples += region.samples;
  job.lan_bytes += region.lan_bytes;
  for (const WorkerState& worker : region.workers) {
    job.times.compute += worker.times.compute;
    job.times.encode += worker.times.encode;
    job.times.exchange += worker.times.exchange;
    job.times.barrier += worker.times.barrier;
  }
  for (const ShardState& shard : region.shards) {
    if (!shard.says) continue;
    job.refused_not_finite += shard.says->refused_not_finite();
    job.refused_malformed += shard.says->refused_malformed();
    job.overflows += shard.says->overflows();
    job.last_sync_without.insert(shard.says->last_sync_without().begin(),
                                 shard.says->last_sync_without().end());
    const auto size = static_cast<std::size_t>(shard.says->staleness_size());
    if (size > job.staleness.size()) job.staleness.resize(size);
    for (std::size_t i = 0; i < size; ++i) job.staleness[i] += shard.says->staleness(static_cast<int>(i));
  }
}

}  // namespace

JobStatus job_status(const core::JobConfig& config, std::span<const proto::StatusReply> replies) {
  const Answers answers = by_shard(config, replies);
  JobStatus job;
  for (std::size_t region = 0; region < config.regions.size(); ++region) {
    job.regions.push_back(region_state(config, region, answers));
    add_region(job.regions.back(), job);
    for (std::size_t to = 0; to < config.regions.size(); ++to) {
      if (to == region) continue;
      job.links.push_back(directed_link(config, region, to, answers));
      job.wan_bytes += job.links.back().bytes;
    }
  }
  for (const auto& [place, reply] : answers) {
    if (reply->last_error().empty()) continue;
    job.last_errors.emplace_back(reply->region() + "/" + std::to_string(place.second), reply->last_error());
  }
  return job;
}

std::optional<std::uint64_t> percentile(std::span<const std::uint64_t> histogram, double share) {
  const std::uint64_t total = std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0});
  if (total == 0) return std::nullopt;
  const auto wanted =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total))));
  std::uint64_t seen = 0;
  for (std::size_t value = 0; value < histogram.size(); ++value) {
    seen += histogram[value];
    if (seen >= wanted) return value;
  }
  return histogram.size() - 1;
}

std::string_view to_string(proto::Phase phase) noexcept {
  switch (phase) {
    case proto::PHASE_WAITING: return "waiting";
    case proto::PHASE_TRAINING: return "training";
    case proto::PHASE_DRAINING: return "draining";
    case proto::PHASE_DRAINED: return "drained";
    default: return "unknown";
  }
}

}  // namespace isthmus::apps
