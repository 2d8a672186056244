#include "apps/summary.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/units.h"

namespace isthmus::apps {
namespace {

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::uint64_t dense_bytes_per_link(std::size_t regions, std::uint64_t elements, Step steps) {
  return regions < 2 ? 0 : 2 * 4 * elements * steps / regions;
}

Summary summarise(const core::JobConfig& config, const JobStatus& status, std::uint64_t elements,
                  double seconds) {
  Summary summary;
  summary.seconds = seconds;
  summary.steps = status.clock;
  summary.samples_per_second = seconds > 0 ? static_cast<double>(status.samples) / seconds : 0;
  summary.exposed_communication = status.times.exposed();
  summary.staleness_p50 = percentile(status.staleness, 0.5).value_or(0);
  summary.staleness_p99 = percentile(status.staleness, 0.99).value_or(0);
  summary.lan_bytes = status.lan_bytes;
  summary.refused_not_finite = status.refused_not_finite;
  for (const DirectedLink& link : status.links) {
    summary.links.push_back({link.from, link.to, link.bytes,
                             dense_bytes_per_link(config.regions.size(), elements, status.clock)});
  }
  return summary;
}

std::string to_json(const Summary& summary) {
  nlohmann::ordered_json wan = nlohmann::ordered_json::object();
  for (const LinkSummary& link : summary.links)
    wan[link.from + "->" + link.to] = {{"bytes", link.bytes}, {"dense_bytes", link.dense_bytes}};
  nlohmann::ordered_json json = {
      {"schema", 1},
      {"status", summary.status},
      {"seconds", summary.seconds},
      {"steps", summary.steps},
      {"accuracy", or_null(summary.accuracy)},
      {"region_accuracy", summary.region_accuracy},
      {"loss", or_null(summary.loss)},
      {"samples_per_second", summary.samples_per_second},
      {"exposed_communication", summary.exposed_communication},
      {"staleness", {{"p50", summary.staleness_p50}, {"p99", summary.staleness_p99}}},
      {"wan", wan},
      {"lan_bytes", summary.lan_bytes},
      {"max_replica_difference", or_null(summary.max_replica_difference)},
      {"largest_parameter", or_null(summary.largest_parameter)},
      {"workers_lost", summary.workers_lost},
      {"restarts", summary.restarts},
      {"refused_not_finite", summary.refused_not_finite},
  };
  return json.dump();
}

std::string to_table(const Summary& summary) {
  std::string table;
  const auto row = [&](const std::string& name, const std::string& value) {
    table += format("%-28s", name.c_str()) + value + "\n";
  };
  row("status", summary.status);
  if (summary.accuracy) row("accuracy (shared model)", format("%.2f %%", 100 * *summary.accuracy));
  for (const auto& [region, accuracy] : summary.region_accuracy)
    row("accuracy (" + region + ")", format("%.2f %%  before the last sync", 100 * accuracy));
  if (summary.loss) row("loss", format("%.4f", *summary.loss));
  row("steps", std::to_string(summary.steps));
  row("seconds", format("%.1f", summary.seconds));
  row("samples/s", format("%.0f", summary.samples_per_second));
  row("exposed communication", format("%.0f %%  of the workers' time", 100 * summary.exposed_communication));
  row("staleness p50 / p99", format("%llu / %llu", static_cast<unsigned long long>(summary.staleness_p50),
                                    static_cast<unsigned long long>(summary.staleness_p99)));
  row("LAN", core::format_bytes(summary.lan_bytes));
  for (const LinkSummary& link : summary.links) {
    std::string value = core::format_bytes(link.bytes);
    if (link.bytes > 0 && link.dense_bytes > 0) {
      value += format("  (1/%.0f of the %s of synchronous dense fp32)",
                      static_cast<double>(link.dense_bytes) / static_cast<double>(link.bytes),
                      core::format_bytes(link.dense_bytes).c_str());
    }
    row("WAN " + link.from + " -> " + link.to, value);
  }
  if (summary.max_replica_difference && !summary.links.empty())
    row("replicas differ by at most",
        format("%.3g  (largest parameter %.3g)", static_cast<double>(*summary.max_replica_difference),
               static_cast<double>(summary.largest_parameter.value_or(0))));
  if (summary.workers_lost > 0) row("workers lost", std::to_string(summary.workers_lost));
  if (summary.restarts > 0) row("processes started again", std::to_string(summary.restarts));
  if (summary.refused_not_finite > 0)
    row("NaN contributions refused", std::to_string(summary.refused_not_finite));
  return table;
}

}  // namespace isthmus::apps
