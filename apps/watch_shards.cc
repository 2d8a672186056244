#include "apps/watch_shards.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/job_status.h"
#include "apps/metrics_text.h"
#include "worker/admin.h"

namespace isthmus::apps {
namespace {

HttpAnswer metrics(const std::vector<Result<proto::StatusReply>>& answers) {
  std::vector<proto::StatusReply> replies;
  for (const auto& answer : answers)
    if (answer.ok()) replies.push_back(*answer);
  return {200, kMetricsType, metrics_text(replies) + process_metrics()};
}

HttpAnswer health(const std::vector<Result<proto::StatusReply>>& answers) {
  nlohmann::ordered_json silent = nlohmann::ordered_json::array();
  std::optional<proto::Phase> phase;
  for (const auto& answer : answers) {
    if (!answer.ok()) {
      silent.push_back(answer.status().message());
    } else if (!phase || answer->shard().phase() < *phase) {
      phase = answer->shard().phase();
    }
  }
  const bool well = silent.empty();
  nlohmann::ordered_json json = {{"status", well ? "ok" : "unhealthy"}};
  json["phase"] = phase ? nlohmann::ordered_json(to_string(*phase)) : nlohmann::ordered_json(nullptr);
  json["silent"] = std::move(silent);
  return {well ? 200u : 503u, "application/json", json.dump() + "\n"};
}

}  // namespace

HttpEndpoint::Answer watch_shards(std::vector<core::Address> shards) {
  return [shards = std::move(shards)](std::string_view path) -> HttpAnswer {
    if (path == "/metrics") return metrics(worker::status(shards, kAnswerTimeout));
    if (path == "/healthz") return health(worker::status(shards, kAnswerTimeout));
    return {404, HttpAnswer().type, "there are /metrics and /healthz\n"};
  };
}

std::vector<core::Address> own_shards(const core::ServerConfig& server) {
  std::vector<core::Address> shards(server.shards, server.lan_bind);
  for (std::uint32_t shard = 0; shard < server.shards; ++shard) {
    shards[shard].port = static_cast<std::uint16_t>(server.lan_bind.port + shard);
    if (server.lan_bind.is_wildcard())
      shards[shard].host = server.lan_bind.host == "::" ? "::1" : "127.0.0.1";
  }
  return shards;
}

}  // namespace isthmus::apps
