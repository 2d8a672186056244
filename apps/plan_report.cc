#include "apps/plan_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/table.h"
#include "core/units.h"

namespace isthmus::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;  // A program that knows 1 may read later ones: members are only ever added.

std::string summary(const core::JobConfig& config, const Plan& plan) {
  std::uint64_t servers = 0, shards = 0, workers = 0;
  for (const RegionPlan& region : plan.regions) {
    workers += region.workers;
    servers += region.servers.size();
    for (const ServerPlan& server : region.servers) shards += server.shards.size();
  }
  std::string text = "job " + plan.job + ": " + count_of(plan.regions.size(), "region") + ", " +
                     count_of(servers, "server") + ", " + count_of(shards, "shard") + ", " +
                     count_of(workers, "worker") + "\n";
  text += "model " + config.trainer.model + ": ";
  if (!plan.model) return text + "its workers alone know its tensors, so nothing more can be planned\n";
  return text + count_of(plan.model->tensors, "tensor") + ", " + count_of(plan.model->slices, "slice") +
         ", " + count_of(plan.model->elements, "element") + "\n";
}

// What a row begins with, and what only a known model can add to it.
std::vector<std::string> row(std::vector<std::string> begin, std::vector<std::string> of_model,
                             const Plan& plan) {
  if (plan.model) begin.insert(begin.end(), of_model.begin(), of_model.end());
  return begin;
}

std::string shard_table(const Plan& plan) {
  Table table(row({"region", ">server", ">shard", "address"}, {">slices", ">elements"}, plan));
  for (const RegionPlan& region : plan.regions) {
    std::uint64_t index = 0;
    for (std::size_t server = 0; server < region.servers.size(); ++server) {
      for (const ShardPlan& shard : region.servers[server].shards) {
        table.add(row({region.name, std::to_string(server), std::to_string(index++), shard.lan.to_string()},
                      {grouped(shard.slices), grouped(shard.elements)}, plan));
      }
    }
  }
  return table.to_string();
}

std::string server_table(const Plan& plan) {
  Table table(row({"region", ">server", "other regions reach it at"},
                  {">memory", ">parameters", ">optimizer", ">workers'", ">sync", ">home"}, plan));
  for (const RegionPlan& region : plan.regions) {
    for (std::size_t i = 0; i < region.servers.size(); ++i) {
      const ServerPlan& server = region.servers[i];
      const MemoryPlan& memory = server.memory;
      std::vector<std::string> sizes;
      for (const std::uint64_t bytes : {memory.total(), memory.parameters, memory.optimizer,
                                        memory.contributions, memory.region, memory.home})
        sizes.push_back(core::format_bytes(bytes));
      table.add(row({region.name, std::to_string(i), server.wan.host.empty() ? "-" : server.wan.to_string()},
                    std::move(sizes), plan));
    }
  }
  return table.to_string();
}

std::string link_table(const Plan& plan) {
  Table table(
      {"link", ">home to", ">bytes a sync", ">contributions", ">global", ">around them", ">transfer"});
  for (const LinkPlan& link : plan.links) {
    std::string home;
    for (const RegionPlan& region : plan.regions) {
      if (region.name == link.from) home = count_of(region.home_slices, "slice");
    }
    table.add({link.from + " -> " + link.to, home, core::format_bytes(link.sync()),
               core::format_bytes(link.contributions), core::format_bytes(link.global_deltas),
               core::format_bytes(link.overhead),
               link.transfer ? core::format_duration(*link.transfer) : "-"});
  }
  return table.to_string();
}

std::string cadence(const core::SyncConfig& sync) {
  std::string text;
  if (sync.every_steps > 0) text = core::exact_count(sync.every_steps, "steps");
  if (sync.every_time > core::Duration(0))
    text += (text.empty() ? "" : " or ") + core::exact_duration(sync.every_time);
  return text;
}

std::string codec_name(const core::CodecConfig& codec) {
  const std::string name(core::to_string(codec.kind));
  return codec.kind == core::CodecKind::kTopk || codec.kind == core::CodecKind::kRandk
             ? name + " " + core::exact_share(codec.keep)
             : name;
}

// How many times fewer; "" when that says nothing.
std::string ratio(std::uint64_t dense, std::uint64_t bytes) {
  if (bytes == 0 || dense < 2 * bytes) return "";
  return ", " +
         grouped(static_cast<std::uint64_t>(
             std::llround(static_cast<double>(dense) / static_cast<double>(bytes)))) +
         " times as much";
}

std::string sync_text(const core::JobConfig& config, const Plan& plan) {
  std::string text = "sync: " + std::string(core::to_string(config.sync.strategy)) + " every " +
                     cadence(config.sync) + ", " + codec_name(config.compression.wan);
  if (plan.sync_time) {
    text += "; takes about " + core::format_duration(*plan.sync_time);
    if (config.links.emulate->rate_bytes_per_sec > 0)
      text += " at " + core::format_rate(static_cast<double>(config.links.emulate->rate_bytes_per_sec));
    text += ", " + core::format_duration(config.links.emulate->rtt) + " there and back";
  }
  text += "\n";
  if (plan.syncs && plan.wan_bytes) {
    text += "until the stop: at most " + count_of(*plan.syncs, "sync") + ", " +
            core::format_bytes(*plan.wan_bytes) + " on all links together\n";
  }
  if (plan.dense_bytes) {
    text += "synchronous dense fp32 would send " + core::format_bytes(*plan.dense_bytes) +
            (plan.wan_bytes ? ratio(*plan.dense_bytes, *plan.wan_bytes) : "") + "\n";
  }
  return text;
}

Json seconds(const std::optional<core::Duration>& value) {
  return value ? Json(std::chrono::duration<double>(*value).count()) : Json(nullptr);
}
Json number(const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json(const ServerPlan& server) {
  Json shards = Json::array();
  for (const ShardPlan& shard : server.shards)
    shards.push_back(
        {{"lan", shard.lan.to_string()}, {"slices", shard.slices}, {"elements", shard.elements}});
  const MemoryPlan& memory = server.memory;
  return {{"wan", server.wan.host.empty() ? Json(nullptr) : Json(server.wan.to_string())},
          {"shards", std::move(shards)},
          {"memory",
           {{"total", memory.total()},
            {"parameters", memory.parameters},
            {"optimizer", memory.optimizer},
            {"contributions", memory.contributions},
            {"region", memory.region},
            {"home", memory.home}}}};
}

Json to_json(const RegionPlan& region) {
  Json servers = Json::array();
  for (const ServerPlan& server : region.servers) servers.push_back(to_json(server));
  return {{"name", region.name},
          {"workers", region.workers},
          {"home_slices", region.home_slices},
          {"home_elements", region.home_elements},
          {"servers", std::move(servers)}};
}

Json to_json(const LinkPlan& link) {
  return {{"contribution_bytes", link.contributions},  {"global_bytes", link.global_deltas},
          {"overhead_bytes", link.overhead},           {"sync_bytes", link.sync()},
          {"start_and_end_bytes", link.start_and_end}, {"transfer_seconds", seconds(link.transfer)}};
}

}  // namespace

std::string plan_text(const core::JobConfig& config, const Plan& plan) {
  std::string text = summary(config, plan);
  text += "\n" + shard_table(plan);
  text += "\n" + server_table(plan);
  if (plan.regions.size() > 1) {
    if (!plan.links.empty()) text += "\n" + link_table(plan);
    text += "\n" + sync_text(config, plan);
  }
  if (!plan.warnings.empty()) text += "\n";
  for (const core::ConfigProblem& warning : plan.warnings)
    text += "warning: " + warning.key + ": " + warning.message + "\n";
  return text;
}

std::string plan_json(const core::JobConfig& config, const Plan& plan) {
  Json json = {{"schema", kSchema}, {"job", plan.job}};
  json["model"] = {{"name", config.trainer.model},
                   {"tensors", plan.model ? Json(plan.model->tensors) : Json(nullptr)},
                   {"slices", plan.model ? Json(plan.model->slices) : Json(nullptr)},
                   {"elements", plan.model ? Json(plan.model->elements) : Json(nullptr)}};
  json["regions"] = Json::array();
  for (const RegionPlan& region : plan.regions) json["regions"].push_back(to_json(region));
  json["links"] = Json::object();
  for (const LinkPlan& link : plan.links) json["links"][link.from + "->" + link.to] = to_json(link);
  json["sync_seconds"] = seconds(plan.sync_time);
  json["syncs"] = number(plan.syncs);
  json["wan_bytes"] = number(plan.wan_bytes);
  json["dense_bytes"] = number(plan.dense_bytes);
  json["warnings"] = Json::array();
  for (const core::ConfigProblem& warning : plan.warnings)
    json["warnings"].push_back({{"key", warning.key}, {"message", warning.message}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace isthmus::apps
