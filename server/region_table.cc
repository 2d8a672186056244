#include "server/region_table.h"

#include <algorithm>

namespace isthmus::server {

RegionTable::RegionTable(const core::JobConfig& config, std::uint32_t own_region, std::uint32_t own_shards,
                         core::TimePoint now) {
  for (std::uint32_t region = 0; region < config.regions.size(); ++region) {
    if (region == own_region) continue;
    for (std::uint32_t server = 0; server < config.regions[region].servers.size(); ++server) {
      auto entry = std::make_unique<Entry>();
      entry->peer = {region, server};
      entry->down_since = now.time_since_epoch().count();
      peers_.push_back(std::move(entry));
    }
  }
  for (std::uint32_t i = 0; i < own_shards; ++i)
    own_clocks_.push_back(std::make_unique<std::atomic<Step>>(0));
}

const RegionTable::Entry* RegionTable::find(wan::Peer peer) const noexcept {
  for (const auto& entry : peers_) {
    if (entry->peer == peer) return entry.get();
  }
  return nullptr;
}

RegionTable::Entry* RegionTable::find(wan::Peer peer) noexcept {
  return const_cast<Entry*>(std::as_const(*this).find(peer));
}

bool RegionTable::set_own_clock(std::uint32_t local_shard, Step clock) noexcept {
  return own_clocks_[local_shard]->exchange(clock) != clock;
}

void RegionTable::advance_clock(wan::Peer peer, Step clock) noexcept {
  Entry* entry = find(peer);
  if (entry == nullptr) return;
  Step known = entry->clock.load(std::memory_order_relaxed);
  while (known < clock && !entry->clock.compare_exchange_weak(known, clock, std::memory_order_relaxed)) {
  }
}

Step RegionTable::own_clock() const noexcept {
  Step slowest = wan::kFinishedClock;
  for (const auto& clock : own_clocks_) slowest = std::min(slowest, clock->load());
  return slowest;
}

Step RegionTable::slowest_other() const noexcept {
  Step slowest = wan::kFinishedClock;
  for (const auto& entry : peers_) slowest = std::min(slowest, entry->clock.load(std::memory_order_relaxed));
  return slowest;
}

bool RegionTable::region_up(std::uint32_t region) const noexcept {
  return std::all_of(peers_.begin(), peers_.end(),
                     [&](const auto& entry) { return entry->peer.region != region || entry->up.load(); });
}

bool RegionTable::region_lost(std::uint32_t region, core::TimePoint now,
                              core::Duration grace) const noexcept {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& entry) {
    // In this order: a link that goes down right now must not be taken for one that was down long ago.
    if (entry->peer.region != region || entry->up.load()) return false;
    const core::TimePoint since{core::TimePoint::duration(entry->down_since.load())};
    return now - since >= grace;
  });
}

bool RegionTable::region_finished(std::uint32_t region) const noexcept {
  return std::all_of(peers_.begin(), peers_.end(), [&](const auto& entry) {
    return entry->peer.region != region || entry->clock.load() == wan::kFinishedClock;
  });
}

}  // namespace isthmus::server
