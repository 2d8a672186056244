#include "apps/status_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/table.h"
#include "core/units.h"

namespace isthmus::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;  // A program that knows 1 may read later ones: members are only ever added.
constexpr double kMedian = 0.5, kTail = 0.99;

bool shown(const StatusView& view, const RegionState& region) {
  return view.region.empty() || region.name == view.region;
}
bool shown(const StatusView& view, const DirectedLink& link) {
  return view.region.empty() || link.from == view.region || link.to == view.region;
}

// Of what is shown.
std::pair<std::size_t, std::size_t> answered(const StatusView& view) {
  std::pair<std::size_t, std::size_t> count;
  for (const RegionState& region : view.status.regions) {
    if (!shown(view, region)) continue;
    count.first += region.answered;
    count.second += region.shards.size();
  }
  return count;
}

std::uint64_t whole(double value) { return value > 0 ? static_cast<std::uint64_t>(std::llround(value)) : 0; }

std::string summary(const StatusView& view) {
  const auto [some, all] = answered(view);
  std::string text = "job " + view.job + ": ";
  if (some == 0) return text + "no shard answers\n";
  text += std::string(to_string(view.status.phase)) + ", step " + grouped(view.status.clock) + ", " +
          count_of(view.status.samples, "sample");
  if (view.rates) {
    text += ", " + grouped(whole(view.rates->steps_per_second)) + " steps/s, " +
            grouped(whole(view.rates->samples_per_second)) + " samples/s";
  }
  text += "\n" + std::to_string(some) + " of " + count_of(all, "shard") + " answered";
  const auto median = percentile(view.status.staleness, kMedian);
  const auto tail = percentile(view.status.staleness, kTail);
  if (median && tail) text += "; staleness p50 " + std::to_string(*median) + ", p99 " + std::to_string(*tail);
  const std::uint64_t refused = view.status.refused_not_finite + view.status.refused_malformed;
  if (refused > 0) {
    text += "; " + count_of(refused, "contribution") + " refused, " +
            grouped(view.status.refused_not_finite) + " of them not finite";
  }
  if (view.status.overflows > 0)
    text += "; " + count_of(view.status.overflows, "round") + " between regions overflowed";
  for (const std::string& region : view.status.last_sync_without)
    text += "\nthe last sync was done without " + region;
  return text + "\n";
}

std::string phase_text(const proto::ShardStatus& shard) {
  return shard.halted() ? "halted" : std::string(to_string(shard.phase()));
}

std::string shard_table(const StatusView& view) {
  Table table({"region", ">server", ">shard", "phase", ">step", ">round", ">commits", ">samples", ">LAN in",
               ">LAN out"});
  for (const RegionState& region : view.status.regions) {
    if (!shown(view, region)) continue;
    for (const ShardState& shard : region.shards) {
      std::vector<std::string> words = {region.name, std::to_string(shard.server),
                                        std::to_string(shard.shard)};
      if (shard.says) {
        words.push_back(phase_text(*shard.says));
        for (const std::uint64_t number :
             {shard.says->clock(), shard.says->newest_round(), shard.says->commits(), shard.says->samples()})
          words.push_back(grouped(number));
        words.push_back(core::format_bytes(shard.says->received_bytes()));
        words.push_back(core::format_bytes(shard.says->sent_bytes()));
      } else {
        words.emplace_back("no answer");
      }
      table.add(std::move(words));
    }
  }
  return table.to_string();
}

std::string worker_table(const StatusView& view) {
  Table table({"region", ">worker", ">step", "state", ">lease", ">refused", ">compute", ">encode",
               ">exchange", ">barrier"});
  bool any = false;
  for (const RegionState& region : view.status.regions) {
    if (!shown(view, region)) continue;
    for (const WorkerState& worker : region.workers) {
      const bool living = !worker.done && worker.lease > std::chrono::milliseconds(0);
      const double all = worker.times.all();
      const auto share = [all](double part) {
        return all > 0 ? std::to_string(std::llround(100 * part / all)) + " %" : "-";
      };
      table.add({region.name, std::to_string(worker.worker), grouped(worker.step),
                 worker.done ? "done"
                 : living    ? "living"
                             : "gone",
                 living ? core::format_duration(worker.lease) : "-", grouped(worker.refused),
                 share(worker.times.compute), share(worker.times.encode), share(worker.times.exchange),
                 share(worker.times.barrier)});
      any = true;
    }
  }
  return any ? "\n" + table.to_string() : "";
}

std::string up_text(const DirectedLink& link) {
  if (link.links == 0) return "-";
  if (link.links == 1) return link.up == 1 ? "yes" : "no";
  return std::to_string(link.up) + " of " + std::to_string(link.links);
}

std::string link_table(const StatusView& view) {
  Table table({"link", "up", ">RTT", ">bytes", ">now", ">reconnects", ">refused"});
  bool any = false;
  for (std::size_t i = 0; i < view.status.links.size(); ++i) {
    const DirectedLink& link = view.status.links[i];
    if (!shown(view, link)) continue;
    const bool known = view.rates && i < view.rates->link_bits_per_second.size();
    table.add({link.from + " -> " + link.to, up_text(link),
               link.rtt.count() > 0 ? core::format_duration(link.rtt) : "-", core::format_bytes(link.bytes),
               known ? core::format_rate(view.rates->link_bits_per_second[i] / 8) : "-",
               grouped(link.reconnects), grouped(link.refused)});
    any = true;
  }
  return any ? "\n" + table.to_string() : "";
}

// Words of a peer, without what a terminal would obey.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return text;
}

std::string troubles(const StatusView& view) {
  std::string text;
  for (const auto& [shard, why] : view.silent) text += shard + " did not answer: " + printable(why) + "\n";
  for (const auto& [shard, what] : view.status.last_errors)
    text += shard + ", last error: " + printable(what) + "\n";
  for (const DirectedLink& link : view.status.links) {
    if (shown(view, link) && !link.last_error.empty())
      text += link.from + " -> " + link.to + ", last error: " + printable(link.last_error) + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

Json number(const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }
double in_seconds(std::chrono::duration<double> time) { return time.count(); }
Json error(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json to_json(const ShardState& shard) {
  Json json = {{"server", shard.server}, {"shard", shard.shard}, {"answered", shard.says.has_value()}};
  if (!shard.says) return json;
  const proto::ShardStatus& says = *shard.says;
  json["phase"] = to_string(says.phase());
  json["halted"] = says.halted();
  json["step"] = says.clock();
  json["round"] = says.newest_round();
  json["slices"] = says.slices();
  json["elements"] = says.elements();
  json["commits"] = says.commits();
  json["samples"] = says.samples();
  json["received_bytes"] = says.received_bytes();
  json["sent_bytes"] = says.sent_bytes();
  json["refused_not_finite"] = says.refused_not_finite();
  json["refused_malformed"] = says.refused_malformed();
  json["contributions_folded"] = says.contributions_folded();
  json["duplicates_ignored"] = says.duplicates_ignored();
  json["resets"] = says.resets();
  json["checksum_mismatches"] = says.checksum_mismatches();
  json["untold_norm"] = says.untold_norm();
  json["parameter_norm"] = says.parameter_norm();
  return json;
}

Json to_json(const RegionState& region) {
  Json shards = Json::array();
  for (const ShardState& shard : region.shards) shards.push_back(to_json(shard));
  Json workers = Json::array();
  for (const WorkerState& worker : region.workers) {
    workers.push_back({{"worker", worker.worker},
                       {"step", worker.step},
                       {"done", worker.done},
                       {"lease_seconds", in_seconds(worker.lease)},
                       {"refused", worker.refused},
                       {"seconds",
                        {{"compute", worker.times.compute},
                         {"encode", worker.times.encode},
                         {"exchange", worker.times.exchange},
                         {"barrier", worker.times.barrier}}}});
  }
  const bool known = region.answered > 0;
  return {{"name", region.name},         {"phase", known ? Json(to_string(region.phase)) : Json(nullptr)},
          {"halted", region.halted},     {"step", known ? Json(region.clock) : Json(nullptr)},
          {"samples", region.samples},   {"lan_bytes", region.lan_bytes},
          {"shards", std::move(shards)}, {"workers", std::move(workers)}};
}

Json to_json(const DirectedLink& link) {
  return {{"links", link.links},
          {"up", link.up},
          {"rtt_seconds", link.rtt.count() > 0 ? Json(in_seconds(link.rtt)) : Json(nullptr)},
          {"bytes", link.bytes},
          {"reconnects", link.reconnects},
          {"refused", link.refused},
          {"last_error", error(link.last_error)}};
}

Json errors_to_json(const std::vector<std::pair<std::string, std::string>>& errors) {
  Json json = Json::array();
  for (const auto& [shard, text] : errors) json.push_back({{"shard", shard}, {"message", text}});
  return json;
}

}  // namespace

std::string status_text(const StatusView& view) {
  if (answered(view).first == 0) return summary(view) + troubles(view);
  return summary(view) + "\n" + shard_table(view) + worker_table(view) + link_table(view) + troubles(view);
}

std::string status_json(const StatusView& view) {
  const JobStatus& status = view.status;
  const auto [some, all] = answered(view);
  const bool known = some > 0;
  Json json = {{"schema", kSchema}, {"job", view.job}};
  json["phase"] = known ? Json(to_string(status.phase)) : Json(nullptr);
  json["step"] = known ? Json(status.clock) : Json(nullptr);
  json["samples"] = status.samples;
  json["steps_per_second"] = view.rates ? Json(view.rates->steps_per_second) : Json(nullptr);
  json["samples_per_second"] = view.rates ? Json(view.rates->samples_per_second) : Json(nullptr);
  json["staleness"] = {{"p50", number(percentile(status.staleness, kMedian))},
                       {"p99", number(percentile(status.staleness, kTail))}};
  json["overflows"] = status.overflows;
  json["last_sync_without"] = status.last_sync_without;
  json["lan_bytes"] = status.lan_bytes;
  json["wan_bytes"] = status.wan_bytes;
  json["shards"] = all;
  json["shards_answered"] = some;
  json["regions"] = Json::array();
  for (const RegionState& region : status.regions) {
    if (shown(view, region)) json["regions"].push_back(to_json(region));
  }
  json["links"] = Json::object();
  for (std::size_t i = 0; i < status.links.size(); ++i) {
    const DirectedLink& link = status.links[i];
    if (!shown(view, link)) continue;
    Json entry = to_json(link);
    const bool rate = view.rates && i < view.rates->link_bits_per_second.size();
    entry["bits_per_second"] = rate ? Json(view.rates->link_bits_per_second[i]) : Json(nullptr);
    json["links"][link.from + "->" + link.to] = std::move(entry);
  }
  json["silent"] = errors_to_json(view.silent);
  json["last_errors"] = errors_to_json(status.last_errors);
  // A peer's words may be any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace isthmus::apps
