#include "server/saved_state.h"

#include <algorithm>
#include <utility>

#include "server/directory.h"
#include "server/optimizer.h"

namespace isthmus::server {
namespace {

Status misfit(const std::string& what, const std::string& saved, const std::string& wanted) {
  return {ErrorCode::kInvalidArgument, "it is of " + what + " " + saved + ", and this is " + wanted};
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// The slice's numbers against what this server makes of the config.
Status check_slice(const SavedSlice& slice, std::size_t state_vectors, std::size_t home_peers) {
  const std::string name = "slice " + std::to_string(slice.slice);
  if (slice.state.size() != state_vectors)
    return misfit("an optimizer with", std::to_string(slice.state.size()) + " arrays a slice",
                  "one with " + std::to_string(state_vectors));
  if ((slice.home ? slice.home->peers.size() : 0) != home_peers)
    return {ErrorCode::kInvalidArgument, name + " has another home, or other regions, than the config says"};
  if (slice.version == 0) return {ErrorCode::kCorruption, name + " has no values"};
  return {};
}

}  // namespace

Step SavedServer::step() const {
  Step slowest = ~Step{0};
  for (const SavedShard& shard : shards) slowest = std::min(slowest, shard.clock);
  return shards.empty() ? 0 : slowest;
}

Status check_fits(const SavedServer& saved, const core::JobConfig& config, std::uint32_t region,
                  std::uint32_t server) {
  const core::RegionConfig& region_config = config.regions[region];
  if (saved.job != config.job) return misfit("job", quoted(saved.job), quoted(config.job));
  if (saved.region != region_config.name || saved.server != server)
    return misfit("region", saved.region + ", server " + std::to_string(saved.server),
                  region_config.name + ", server " + std::to_string(server));
  if (saved.optimizer != to_string(config.optimizer.kind))
    return misfit("optimizer", saved.optimizer, std::string(to_string(config.optimizer.kind)));
  const bool mean_squares = config.commit.compensation && config.commit.compensation->adaptive;
  if (saved.mean_squares != mean_squares)
    return misfit("adaptive compensation", saved.mean_squares ? "on" : "off", mean_squares ? "on" : "off");

  const Directory directory(config, saved.layout);
  const std::uint32_t first = directory.first_shard(region, server);
  if (saved.shards.size() != region_config.servers[server].shards)
    return misfit("a server with", std::to_string(saved.shards.size()) + " shards",
                  "one with " + std::to_string(region_config.servers[server].shards));
  const std::size_t vectors =
      make_optimizer(config.optimizer)->state_vectors() + static_cast<std::size_t>(mean_squares);
  for (std::size_t i = 0; i < saved.shards.size(); ++i) {
    const SavedShard& shard = saved.shards[i];
    std::vector<core::SliceId> wanted;
    for (const core::Slice& slice : saved.layout.slices())
      if (directory.shard_of(region, slice.id) == first + i) wanted.push_back(slice.id);
    const bool same = shard.shard == first + i &&
                      std::equal(wanted.begin(), wanted.end(), shard.slices.begin(), shard.slices.end(),
                                 [](core::SliceId id, const SavedSlice& s) { return s.slice == id; });
    if (!same)
      return {
          ErrorCode::kInvalidArgument,
          "it cuts the tensors into other slices, or spreads them over other shards, than the config says"};
    for (const SavedSlice& slice : shard.slices) {
      const bool home = config.regions.size() > 1 && directory.home_of(slice.slice) == region;
      ISTHMUS_RETURN_IF_ERROR(check_slice(slice, vectors, home ? config.regions.size() : 0));
    }
  }
  return {};
}

}  // namespace isthmus::server
