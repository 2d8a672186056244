#include "server/directory.h"

#include <algorithm>
#include <string>

#include "core/units.h"

namespace isthmus::server {
namespace {

constexpr std::uint64_t kOverheadBytes = 64 << 10;  // A message's frame and the rest of its meta, generously.
constexpr std::uint64_t kRecordBytes = 64;          // What the meta says of one slice.

}  // namespace

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

Status check_message_limit(const core::JobConfig& config, const core::Layout& layout) {
  for (const core::RegionConfig& region : config.regions) {
    std::vector<std::uint64_t> needed(region.shards(), kOverheadBytes);
    const std::vector<std::uint32_t> shards = core::assign_shards(layout, region.shards());
    for (const core::Slice& slice : layout.slices())
      needed[shards[slice.id]] += slice.elements * sizeof(float) + kRecordBytes;
    const std::uint64_t largest = *std::max_element(needed.begin(), needed.end());
    if (largest <= config.limits.message_bytes) continue;
    return {ErrorCode::kInvalidArgument,
            "limits.message: " + core::exact_bytes(config.limits.message_bytes) +
                " cannot hold what a shard of region " + region.name +
                " has, which its workers exchange in one message; give at least " +
                core::exact_bytes(largest) + ", or more shards"};
  }
  return {};
}

}  // namespace isthmus::server
