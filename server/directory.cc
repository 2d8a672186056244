#include "server/directory.h"

#include <algorithm>

namespace isthmus::server {

Directory::Directory(const core::JobConfig& config, const core::Layout& layout)
    : homes_(core::assign_homes(layout, std::vector<double>(config.regions.size(), 1.0))) {
  for (const core::RegionConfig& region : config.regions) {
    std::vector<std::uint32_t> server_of_shard;
    for (std::uint32_t server = 0; server < region.servers.size(); ++server)
      server_of_shard.insert(server_of_shard.end(), region.servers[server].shards, server);
    shards_.push_back(core::assign_shards(layout, static_cast<std::uint32_t>(server_of_shard.size())));
    server_of_shard_.push_back(std::move(server_of_shard));
  }
}

std::uint32_t Directory::first_shard(std::uint32_t region, std::uint32_t server) const {
  const auto& servers = server_of_shard_[region];
  return static_cast<std::uint32_t>(std::find(servers.begin(), servers.end(), server) - servers.begin());
}

}  // namespace isthmus::server
