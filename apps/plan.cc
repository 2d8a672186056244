#include "apps/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "apps/plan_warnings.h"
#include "compression/codec.h"
#include "core/layout.h"
#include "proto/frame.h"
#include "server/directory.h"
#include "server/optimizer.h"

namespace isthmus::apps {
namespace {

// Around a record: about what a contribution's or a delta's meta takes, and an acknowledgement's.
constexpr std::uint64_t kMetaBytes = 40;
constexpr std::uint64_t kAckMetaBytes = 20;
// TLS 1.3: header, content type and tag, for each record of at most 16 KiB.
constexpr std::uint64_t kTlsBytes = 5 + 1 + 16;
constexpr std::uint64_t kTlsRecordBytes = 16 << 10;

constexpr std::uint64_t kFloatBytes = sizeof(float);

// A job may be declared that no machine can run: its numbers stop at the largest.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}
std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}

core::Duration to_duration(double seconds) {
  constexpr double kLongest = 3e9;  // 95 years; Duration ends at 292.
  return core::Duration(std::llround(std::min(seconds, kLongest) * 1e9));
}

std::vector<RegionPlan> plan_regions(const core::JobConfig& config) {
  std::vector<RegionPlan> regions;
  for (const core::RegionConfig& region : config.regions) {
    RegionPlan& plan = regions.emplace_back();
    plan.name = region.name;
    plan.workers = region.workers;
    for (const core::ServerConfig& server : region.servers) {
      ServerPlan& here = plan.servers.emplace_back();
      here.wan = server.wan;
      for (std::uint32_t i = 0; i < server.shards; ++i) {
        core::Address lan = server.lan;
        lan.port = static_cast<std::uint16_t>(lan.port + i);
        here.shards.push_back({std::move(lan), 0, 0});
      }
    }
  }
  return regions;
}

// Everything that follows from the layout, summed up slice by slice.
class Planner {
 public:
  Planner(const core::JobConfig& config, const core::Layout& layout)
      : config_(config),
        layout_(layout),
        directory_(config, layout),
        regions_(config.regions.size()),
        lan_(compression::make_codec(config.compression.lan)),
        wan_(compression::make_codec(config.compression.wan)),
        state_vectors_(server::make_optimizer(config.optimizer)->state_vectors()) {}

  void run(Plan& plan) const {
    plan.model = ModelPlan{layout_.tensors().size(), layout_.slices().size(), layout_.elements()};
    for (std::uint32_t from = 0; from < regions_; ++from) {
      for (std::uint32_t to = 0; to < regions_; ++to) {
        if (from == to) continue;
        LinkPlan& link = plan.links.emplace_back();
        link.from = config_.regions[from].name;
        link.to = config_.regions[to].name;
      }
    }
    for (const core::Slice& slice : layout_.slices()) {
      const std::uint32_t home = directory_.home_of(slice.id);
      plan.regions[home].home_slices += 1;
      plan.regions[home].home_elements += slice.elements;
      for (std::uint32_t region = 0; region < regions_; ++region) {
        add_held(slice, region, plan);
        if (region != home) add_sync(slice, home, region, plan);
      }
    }
    if (has_rate()) add_times(plan);
  }

 private:
  // Of one slice between regions, at most.
  std::uint64_t record_bytes(const core::Slice& slice) const {
    const bool dense =
        layout_.tensors()[slice.tensor.value].elements() < config_.compression.dense_below_elements;
    return dense ? kFloatBytes * slice.elements : wan_->max_encoded_bytes(slice.elements);
  }

  void add_held(const core::Slice& slice, std::uint32_t region, Plan& plan) const {
    const std::uint32_t server = directory_.server_of(region, slice.id);
    ServerPlan& here = plan.regions[region].servers[server];
    ShardPlan& shard =
        here.shards[directory_.shard_of(region, slice.id) - directory_.first_shard(region, server)];
    shard.slices += 1;
    shard.elements += slice.elements;
    add_memory(slice, region, here.memory);
  }

  void add_memory(const core::Slice& slice, std::uint32_t region, MemoryPlan& memory) const {
    const std::uint64_t floats = kFloatBytes * slice.elements;
    const std::uint64_t encoded = lan_->max_encoded_bytes(slice.elements);
    memory.parameters += floats + encoded;
    memory.optimizer += floats * state_vectors_;
    const std::uint64_t workers = config_.regions[region].workers;
    if (config_.commit.policy == core::CommitPolicyKind::kBsp) memory.contributions += encoded * workers;
    if (const auto& compensation = config_.commit.compensation) {
      memory.contributions += floats * workers;  // The versions that they compute from.
      if (compensation->adaptive) memory.optimizer += floats;
    }
    if (regions_ == 1) return;
    memory.region += 2 * floats;  // The anchor, and what is in flight, decoded.
    if (directory_.home_of(slice.id) == region) {
      // A view, what waits for the round and what is not acknowledged. Our own anchor is global itself.
      memory.home += (regions_ - 1) * (floats + 2 * record_bytes(slice));
    } else {
      memory.region += record_bytes(slice);
    }
  }

  // In Plan::links. REQUIRES: from != to.
  std::size_t link(std::uint32_t from, std::uint32_t to) const {
    return from * (regions_ - 1) + to - (to > from ? 1 : 0);
  }

  void add_sync(const core::Slice& slice, std::uint32_t home, std::uint32_t region, Plan& plan) const {
    const std::uint64_t record = record_bytes(slice);
    const std::uint64_t floats = kFloatBytes * slice.elements;
    LinkPlan& up = plan.links[link(region, home)];
    up.contributions += record;
    up.overhead += overhead(record, kMetaBytes) + overhead(0, kAckMetaBytes);
    up.start_and_end += floats;  // The last contribution.
    LinkPlan& down = plan.links[link(home, region)];
    down.global_deltas += record;
    down.overhead += overhead(record, kMetaBytes);
    down.start_and_end += 2 * floats;  // The first values and the last.
  }

  bool has_rate() const {
    return regions_ > 1 && config_.links.emulate && config_.links.emulate->trace.empty();
  }

  double seconds_for(std::uint64_t bytes) const {
    const std::uint64_t rate = config_.links.emulate->rate_bytes_per_sec;
    return rate == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(rate);
  }

  // One sync that all regions begin at once, with links that do nothing else: contributions in the order of
  // the slices, and the delta of a slice once its home has them all.
  void add_times(Plan& plan) const {
    for (LinkPlan& link : plan.links) link.transfer = to_duration(seconds_for(link.sync()));
    const double one_way = std::chrono::duration<double>(config_.links.emulate->rtt).count() / 2;
    std::vector<double> busy_until(plan.links.size(), 0.0);
    std::vector<double> folded(layout_.slices().size(), 0.0);
    double end = 0;
    for (const bool up : {true, false}) {
      for (const core::Slice& slice : layout_.slices()) {
        const std::uint32_t home = directory_.home_of(slice.id);
        const std::uint64_t record = record_bytes(slice);
        const double seconds = seconds_for(record + overhead(record, kMetaBytes));
        for (std::uint32_t region = 0; region < regions_; ++region) {
          if (region == home) continue;
          double& busy = busy_until[up ? link(region, home) : link(home, region)];
          busy = (up ? busy : std::max(busy, folded[slice.id])) + seconds;
          double& arrived = up ? folded[slice.id] : end;
          arrived = std::max(arrived, busy + one_way);
        }
      }
    }
    plan.sync_time = to_duration(end);
  }

  std::uint64_t overhead(std::uint64_t record, std::uint64_t meta) const {
    const std::uint64_t frame = proto::kHeaderBytes + meta;
    if (config_.security.plaintext) return frame;
    return frame + kTlsBytes * ((frame + record + kTlsRecordBytes - 1) / kTlsRecordBytes);
  }

  const core::JobConfig& config_;
  const core::Layout& layout_;
  const server::Directory directory_;
  const std::uint64_t regions_;
  const std::unique_ptr<const compression::Codec> lan_;
  const std::unique_ptr<const compression::Codec> wan_;
  const std::uint64_t state_vectors_;
};

std::optional<std::uint64_t> syncs_until_stop(const core::JobConfig& config) {
  const core::SyncConfig& sync = config.sync;
  const core::StopConfig& stop = config.trainer.stop;
  if (config.regions.size() < 2) return 0;
  const bool timed = sync.every_time > core::Duration(0);
  if (timed && !stop.time) return std::nullopt;
  if (sync.every_steps > 0 && !stop.steps) return std::nullopt;
  std::uint64_t syncs = 0;  // With both, whichever comes first: never more than the two together.
  if (sync.every_steps > 0) syncs = *stop.steps / sync.every_steps;
  if (timed) syncs += static_cast<std::uint64_t>(*stop.time / sync.every_time);
  return syncs;
}

void add_totals(const core::JobConfig& config, Plan& plan) {
  plan.syncs = syncs_until_stop(config);
  if (plan.syncs) {
    std::uint64_t bytes = 0;
    for (const LinkPlan& link : plan.links)
      bytes = sum(bytes, sum(link.start_and_end, product(*plan.syncs, link.sync())));
    plan.wan_bytes = bytes;
  }
  if (config.trainer.stop.steps) {
    plan.dense_bytes = product(product(2 * (config.regions.size() - 1) * kFloatBytes, plan.model->elements),
                               *config.trainer.stop.steps);
  }
}

}  // namespace

Result<Plan> make_plan(const core::JobConfig& config, std::optional<std::vector<TensorSpec>> tensors) {
  Plan plan;
  plan.job = config.job;
  plan.regions = plan_regions(config);
  if (tensors) {
    const auto layout = core::Layout::create(*std::move(tensors), config.slice_elements);
    if (!layout.ok()) return layout.status();
    ISTHMUS_RETURN_IF_ERROR(server::check_message_limit(config, *layout));
    Planner(config, *layout).run(plan);
    add_totals(config, plan);
  }
  plan.warnings = plan_warnings(config, plan);
  return plan;
}

}  // namespace isthmus::apps
