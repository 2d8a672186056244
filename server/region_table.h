// What a server knows of the other regions' servers, as its wan thread learns it and its shards read it.
//
// State, not events: a shard that was busy finds the newest, nothing can be lost, nothing queues.
//
// Threads: the wan thread writes peers, each shard writes its own clock, everybody reads. All fields are
//          atomics; `generation` is written last (release) and read first (acquire).
// Memory:  O(servers of all regions), fixed.
// Errors:  none.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "core/job_config.h"
#include "wan/endpoint.h"

namespace isthmus::server {

class RegionTable {
 public:
  struct Entry {
    wan::Peer peer;
    std::atomic<bool> up{false};
    std::atomic<std::uint64_t> incarnation{0};
    std::atomic<std::uint64_t> generation{0};  // Grows each time the link comes (back) up.
    std::atomic<Step> clock{0};
    std::atomic<std::int64_t> down_since{0};  // Ticks; written before `up` is cleared. Meaningless while up.
  };

  // All links are down since `now`.
  RegionTable(const core::JobConfig& config, std::uint32_t own_region, std::uint32_t own_shards,
              core::TimePoint now);

  std::vector<std::unique_ptr<Entry>>& peers() noexcept { return peers_; }
  const std::vector<std::unique_ptr<Entry>>& peers() const noexcept { return peers_; }
  Entry* find(wan::Peer peer) noexcept;
  const Entry* find(wan::Peer peer) const noexcept;

  // This server's own clock: the slowest of its shards.
  // Returns whether it changed.
  bool set_own_clock(std::uint32_t local_shard, Step clock) noexcept;
  Step own_clock() const noexcept;

  // A message of the peer carried this clock. Clocks never go back.
  void advance_clock(wan::Peer peer, Step clock) noexcept;
  // Of the slowest other region; kFinishedClock when there is none or all have finished.
  Step slowest_other() const noexcept;
  // A region is up when all of its servers' links are.
  bool region_up(std::uint32_t region) const noexcept;
  // Not up, and not for longer than `grace`.
  bool region_lost(std::uint32_t region, core::TimePoint now, core::Duration grace) const noexcept;
  bool region_finished(std::uint32_t region) const noexcept;

 private:
  std::vector<std::unique_ptr<Entry>> peers_;
  std::vector<std::unique_ptr<std::atomic<Step>>> own_clocks_;
};

}  // namespace isthmus::server
