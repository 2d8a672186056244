#include "apps/plan_warnings.h"

#include <algorithm>
#include <optional>

#include "core/units.h"

namespace isthmus::apps {
namespace {

using Warnings = std::vector<core::ConfigProblem>;

// Sparser than this, the shared model fell behind the regions' own copies in simulations.
constexpr double kSparsestKeep = 0.002;

std::optional<core::Address> first_remote(const core::JobConfig& config,
                                          core::Address core::ServerConfig::*which) {
  for (const core::RegionConfig& region : config.regions) {
    for (const core::ServerConfig& server : region.servers) {
      if (!(server.*which).host.empty() && !is_loopback(server.*which)) return server.*which;
    }
  }
  return std::nullopt;
}

void check_codecs(const core::CompressionConfig& compression, Warnings& warnings) {
  if (compression.lan.kind == core::CodecKind::kTopk) {
    warnings.push_back({"compression.lan",
                        "topk leaves out most of the parameters that workers pull, not "
                        "only of their gradients; use a dense codec"});
  }
  if (compression.wan.kind == core::CodecKind::kTopk && compression.wan.keep < kSparsestKeep) {
    warnings.push_back({"compression.wan.keep",
                        core::exact_share(compression.wan.keep) +
                            " is so sparse that the shared model falls behind the regions' own copies; "
                            "keep at least " +
                            core::exact_share(kSparsestKeep)});
  }
}

void check_addresses(const core::JobConfig& config, Warnings& warnings) {
  const auto wan = first_remote(config, &core::ServerConfig::wan);
  if (config.security.plaintext && wan) {
    warnings.push_back({"security.plaintext",
                        "everything to and from " + wan->to_string() +
                            " can be read and changed on the way; remove it unless you trust the network"});
  }
  const auto any = wan ? wan : first_remote(config, &core::ServerConfig::lan);
  if (config.links.emulate && any) {
    warnings.push_back({"links.emulate",
                        "only 'isthmus train' emulates links, with all regions on one machine, "
                        "and " +
                            any->to_string() + " is on another; elsewhere it has no effect"});
  }
}

void check_shards(const Plan& plan, Warnings& warnings) {
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    std::size_t idle = 0;
    for (const ServerPlan& server : plan.regions[r].servers) {
      idle +=
          static_cast<std::size_t>(std::count_if(server.shards.begin(), server.shards.end(),
                                                 [](const ShardPlan& shard) { return shard.slices == 0; }));
    }
    if (idle == 0) continue;
    warnings.push_back({"regions[" + std::to_string(r) + "].servers",
                        core::exact_count(idle, "shards") + " of " + plan.regions[r].name +
                            " would have nothing to do: the model has " +
                            core::exact_count(plan.model->slices, "slices") +
                            "; use fewer shards, or smaller slices (slice)"});
  }
}

void check_bound(const core::SyncConfig& sync, Warnings& warnings) {
  const bool outer = sync.strategy == core::SyncStrategy::kOuter;
  if (!outer || sync.then != core::HardBoundAction::kHalt || sync.hard_staleness >= 2 * sync.every_steps)
    return;
  warnings.push_back({"sync.staleness.hard",
                      core::exact_count(sync.hard_staleness, "steps") + " are less than two syncs of " +
                          core::exact_count(sync.every_steps, "steps") +
                          ": workers would often wait for news of the slowest region; raise it"});
}

// A round that closes before the contributions of other regions can be there folds them one round late.
void check_deadline(const core::JobConfig& config, const Plan& plan, Warnings& warnings) {
  for (const LinkPlan& link : plan.links) {
    if (!link.transfer || link.sync() == 0) continue;
    const double share = static_cast<double>(link.contributions) / static_cast<double>(link.sync());
    const auto arrival =
        config.links.emulate->rtt / 2 +
        core::Duration(static_cast<std::int64_t>(share * static_cast<double>(link.transfer->count())));
    if (arrival <= config.sync.deadline) continue;
    warnings.push_back(
        {"sync.deadline", core::exact_duration(config.sync.deadline) + " are over before what " + link.from +
                              " contributes can reach " + link.to + " (" + core::format_duration(arrival) +
                              "); raise it, or use a sparser compression.wan"});
    return;
  }
}

void check_lockstep(const core::JobConfig& config, const Plan& plan, Warnings& warnings) {
  const auto every = static_cast<std::int64_t>(std::min<Step>(config.sync.every_steps, 1u << 31));
  std::string text = "workers wait for a sync of at least " + core::format_duration(*plan.sync_time);
  text += every == 1 ? " at every step" : " every " + core::exact_count(config.sync.every_steps, "steps");
  if (plan.syncs && *plan.syncs > 0) {
    const double ns = static_cast<double>(plan.sync_time->count()) * static_cast<double>(*plan.syncs);
    text += ", " + core::format_duration(core::Duration(static_cast<std::int64_t>(std::min(ns, 9e18)))) +
            " in all";
  }
  warnings.push_back({"sync.strategy", text + "; outer trains on meanwhile"});
}

// Only the synthetic model says how long a step takes.
std::optional<core::Duration> period(const core::JobConfig& config) {
  std::optional<core::Duration> shortest;
  if (config.sync.every_time > core::Duration(0)) shortest = config.sync.every_time;
  const core::Duration step = config.trainer.synthetic.step_time;
  if (config.trainer.model == "synthetic" && step > core::Duration(0) && config.sync.every_steps > 0 &&
      config.sync.every_steps < (1u << 30)) {
    const core::Duration steps = step * static_cast<std::int64_t>(config.sync.every_steps);
    shortest = shortest ? std::min(*shortest, steps) : steps;
  }
  return shortest;
}

void check_period(const core::JobConfig& config, const Plan& plan, Warnings& warnings) {
  const auto asked = period(config);
  if (!asked || *plan.sync_time <= *asked) return;
  warnings.push_back({"sync.every", "a sync every " + core::format_duration(*asked) +
                                        " is more than the link can do: one takes at least " +
                                        core::format_duration(*plan.sync_time) +
                                        ", and the next waits for it"});
  const core::Duration step = config.trainer.synthetic.step_time;
  if (config.trainer.model != "synthetic" || step <= core::Duration(0)) return;
  const auto steps = static_cast<std::uint64_t>(*plan.sync_time / step);
  if (steps <= config.sync.hard_staleness) return;
  warnings.push_back({"sync.staleness.hard", "workers finish " + core::exact_count(steps, "steps") +
                                                 " during one sync, more than the bound of " +
                                                 core::exact_count(config.sync.hard_staleness, "steps") +
                                                 " allows regions to differ; raise it, or use a sparser "
                                                 "compression.wan"});
}

}  // namespace

bool is_loopback(const core::Address& address) {
  return address.host == "localhost" || address.host == "::1" ||
         (address.host.starts_with("127.") &&
          address.host.find_first_not_of("0123456789.") == std::string::npos);
}

std::vector<core::ConfigProblem> plan_warnings(const core::JobConfig& config, const Plan& plan) {
  Warnings warnings;
  check_codecs(config.compression, warnings);
  check_addresses(config, warnings);
  if (plan.model) check_shards(plan, warnings);
  if (config.regions.size() < 2) return warnings;
  check_bound(config.sync, warnings);
  check_deadline(config, plan, warnings);
  if (!plan.sync_time) return warnings;
  if (config.sync.strategy == core::SyncStrategy::kLockstep)
    check_lockstep(config, plan, warnings);
  else
    check_period(config, plan, warnings);
  return warnings;
}

}  // namespace isthmus::apps
