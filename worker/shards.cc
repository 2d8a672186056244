#include "worker/shards.h"

#include <algorithm>
#include <utility>

namespace isthmus::worker {

std::string to_text(const core::Address& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Status check(const ClientConfig& config) {
  const auto invalid = [](std::string what) { return Status(ErrorCode::kInvalidArgument, std::move(what)); };
  if (config.job.empty()) return invalid("ClientConfig::job is empty");
  if (config.region.empty()) return invalid("ClientConfig::region is empty");
  if (config.servers.empty()) return invalid("ClientConfig::servers is empty");
  for (const ServerEndpoint& server : config.servers) {
    if (server.host.empty()) return invalid("ClientConfig::servers: a host is empty");
    if (server.shards == 0 || server.port == 0 || server.shards - 1 > 65535u - server.port)
      return invalid("ClientConfig::servers: " + server.host + ": port " + std::to_string(server.port) +
                     " and the " + std::to_string(server.shards) + " shards from it are no ports");
  }
  const bool clips = config.clip.norm > 0.0f || config.clip.tensor_norm > 0.0f;
  if (clips && config.deep) return invalid("ClientConfig::clip and deep exclude each other");
  if (config.timeout <= config.timeout.zero()) return invalid("ClientConfig::timeout must be positive");
  if (config.barrier_timeout <= config.barrier_timeout.zero())
    return invalid("ClientConfig::barrier_timeout must be positive");
  return {};
}

std::vector<ShardAddress> shards_of(const ClientConfig& config) {
  std::vector<ShardAddress> shards;
  for (const ServerEndpoint& server : config.servers) {
    for (std::uint32_t i = 0; i < server.shards; ++i) {
      const core::Address address{server.host, static_cast<std::uint16_t>(server.port + i)};
      shards.push_back({address, "shard " + std::to_string(shards.size()) + " at " + to_text(address)});
    }
  }
  return shards;
}

ShardedLayout::ShardedLayout(core::Layout layout, std::uint32_t shards)
    : layout_(std::move(layout)), shards_(shards), shard_of_(core::assign_shards(layout_, shards)) {
  std::vector<std::uint64_t> elements(shards, 0);
  for (const core::Slice& slice : layout_.slices()) elements[shard_of_[slice.id]] += slice.elements;
  most_elements_ = *std::max_element(elements.begin(), elements.end());
}

}  // namespace isthmus::worker
