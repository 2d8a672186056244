// Regions that speak the `outer` protocol over a queue in this process instead of a WAN, at times that the
// test sets. One shard a server.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "server/region_sync.h"
#include "tests/server/server_support.h"

namespace isthmus::server {

class Regions {
 public:
  struct Site {
    Site(const core::JobConfig& config, wan::Peer peer) : who(peer), table(config, peer.region, 1, {}) {}
    wan::Peer who;
    RegionTable table;
    std::vector<std::unique_ptr<LocalSlice>> slices;
    std::unique_ptr<RegionSync> sync;
  };
  struct Packet {
    wan::Peer from, to;
    proto::Message message;
  };

  Regions(core::JobConfig config, core::Layout layout)
      : config_(std::move(config)), layout_(std::move(layout)), clocks_(config_.regions.size(), 0) {
    for (std::uint32_t region = 0; region < config_.regions.size(); ++region) {
      for (std::uint32_t server = 0; server < config_.regions[region].servers.size(); ++server)
        add_site({region, server});
    }
  }

  Site& at(std::uint32_t region, std::uint32_t server = 0) {
    for (auto& site : sites_) {
      if (site->who == wan::Peer{region, server}) return *site;
    }
    ADD_FAILURE() << "no such site";
    return *sites_.front();
  }
  RegionSync& sync(std::uint32_t region, std::uint32_t server = 0) { return *at(region, server).sync; }
  const Directory& directory() const { return directory_; }

  // ---- links
  void connect(wan::Peer a, wan::Peer b) {
    up_.insert({a, b});
    up_.insert({b, a});
    for (auto [here, there] : {std::pair(a, b), std::pair(b, a)}) {
      RegionTable::Entry* entry = at(here.region, here.server).table.find(there);
      entry->incarnation = incarnation_of(there);
      entry->up = true;
      entry->generation.fetch_add(1);
    }
  }
  void connect_all() {
    for_each_pair([this](wan::Peer a, wan::Peer b) { connect(a, b); });
  }
  // What is on its way between the two is lost.
  void cut(wan::Peer a, wan::Peer b) {
    up_.erase({a, b});
    up_.erase({b, a});
    for (auto [here, there] : {std::pair(a, b), std::pair(b, a)}) {
      RegionTable::Entry* entry = at(here.region, here.server).table.find(there);
      entry->down_since = now.time_since_epoch().count();
      entry->up = false;
    }
    std::erase_if(packets,
                  [&](const Packet& p) { return (p.from == a && p.to == b) || (p.from == b && p.to == a); });
  }

  // A new life, without a link and without values. REQUIRES: its links are cut.
  void restart(wan::Peer who) {
    ++restarts_[who];
    const auto old = std::find_if(sites_.begin(), sites_.end(), [&](const auto& s) { return s->who == who; });
    sites_.erase(old);
    add_site(who);
  }

  // ---- training
  // The first worker of `region` offers `value` for every element.
  void initialize(std::uint32_t region, float value) {
    for_sites(region, [&](Site& site) {
      for (std::size_t i = 0; i < site.slices.size(); ++i) {
        if (!site.sync->is_home(i)) continue;
        for (float& parameter : site.slices[i]->parameters().write()) parameter = value;
        site.sync->initialize(i, now);
      }
    });
  }
  // All links up, all parameters 0 in all regions.
  void start() {
    connect_all();
    for (std::uint32_t region = 0; region < clocks_.size(); ++region) initialize(region, 0);
    settle();
  }
  // One step of all of a region's workers: parameters -= gradient(slice, element), as by `samples` samples.
  void step(std::uint32_t region, const std::function<float(core::SliceId, std::size_t)>& gradient,
            std::uint64_t samples = 1) {
    for_sites(region, [&](Site& site) {
      for (auto& slice : site.slices) {
        std::vector<float> values(slice->slice().elements);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = gradient(slice->slice().id, i);
        slice->commit(0, {samples, fp32_.get(), core::copy_bytes(std::as_bytes(std::span(values)))}, *sgd_,
                      1.0f, scratch_);
      }
    });
    ++clocks_[region];
  }
  void step(std::uint32_t region, float gradient, std::uint64_t samples = 1) {
    step(
        region, [gradient](core::SliceId, std::size_t) { return gradient; }, samples);
  }
  void drain(std::uint32_t region) {
    for_sites(region, [&](Site& site) { site.sync->drain(now); });
  }
  bool drained(std::uint32_t region) {
    bool all = true;
    for_sites(region, [&](Site& site) { all = all && site.sync->drained(now).has_value(); });
    return all;
  }
  // REQUIRES: drained().
  std::set<std::uint32_t> last_sync_without(std::uint32_t region) {
    std::set<std::uint32_t> all;
    for_sites(region, [&](Site& site) {
      const auto without = site.sync->drained(now);
      all.insert(without->begin(), without->end());
    });
    return all;
  }
  // The first element of a slice, wherever the region keeps it.
  float value(std::uint32_t region, core::SliceId slice = 0) { return parameters(region, slice)[0]; }
  std::span<const float> parameters(std::uint32_t region, core::SliceId slice) {
    std::span<const float> found;
    for_sites(region, [&](Site& site) {
      for (auto& local : site.slices) {
        if (local->slice().id == slice) found = local->parameters().read();
      }
    });
    return found;
  }
  bool same_bits(std::uint32_t a, std::uint32_t b) {
    for (core::SliceId slice = 0; slice < directory_.slices(); ++slice) {
      const auto x = parameters(a, slice), y = parameters(b, slice);
      if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size_bytes()) != 0) return false;
    }
    return true;
  }

  // ---- time
  // What a shard does each turn.
  void tick(std::uint32_t region) {
    for_sites(region, [&](Site& site) {
      site.sync->poll_links(now);
      if (site.sync->ready()) site.sync->advance(clocks_[region], now);
    });
  }
  void tick() {
    for (std::uint32_t region = 0; region < clocks_.size(); ++region) tick(region);
  }
  // Everything under way arrives, and so does what is said because of it.
  void deliver() {
    while (!packets.empty()) {
      const Packet packet = std::move(packets.front());
      packets.pop_front();
      const Status status = receive(packet);
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }
  Status receive(const Packet& packet) {
    Site& site = at(packet.to.region, packet.to.server);
    std::optional<Step> clock;
    const Status status = site.sync->receive(packet.from, packet.message, now, clock);
    if (status.ok() && clock) site.table.advance_clock(packet.from, *clock);
    return status;
  }
  // Until nobody has anything more to say.
  void settle() {
    do {
      deliver();
      tick();
    } while (!packets.empty());
  }

  core::TimePoint now{std::chrono::seconds(1000)};
  std::deque<Packet> packets;  // Under way, in the order in which they were sent.

 private:
  std::uint64_t incarnation_of(wan::Peer who) const {
    const auto restarts = restarts_.find(who);
    return 100 * (who.region + 1) + who.server + (restarts == restarts_.end() ? 0 : 1000 * restarts->second);
  }

  void add_site(wan::Peer who) {
    auto site = std::make_unique<Site>(config_, who);
    for (const core::Slice& slice : layout_.slices()) {
      if (directory_.server_of(who.region, slice.id) == who.server)
        site->slices.push_back(std::make_unique<LocalSlice>(slice, *sgd_));
    }
    site->sync = std::make_unique<RegionSync>(config_, who.region, incarnation_of(who), layout_, directory_,
                                              site->slices, site->table,
                                              [this, who](wan::Peer to, proto::Message message) {
                                                if (up_.contains({who, to}))
                                                  packets.push_back({who, to, std::move(message)});
                                              });
    sites_.push_back(std::move(site));
  }
  void for_sites(std::uint32_t region, const std::function<void(Site&)>& visit) {
    for (auto& site : sites_) {
      if (site->who.region == region) visit(*site);
    }
  }
  void for_each_pair(const std::function<void(wan::Peer, wan::Peer)>& visit) {
    for (const auto& a : sites_) {
      for (const auto& b : sites_) {
        if (a->who.region < b->who.region) visit(a->who, b->who);
      }
    }
  }

  const core::JobConfig config_;
  const core::Layout layout_;
  const Directory directory_{config_, layout_};
  const std::unique_ptr<const Optimizer> sgd_ = make_optimizer({.learning_rate = 1.0f});
  const std::unique_ptr<const compression::Codec> fp32_ =
      compression::make_codec(core::CodecConfig{core::CodecKind::kFp32});
  std::vector<float> scratch_ = std::vector<float>(1024);
  std::vector<Step> clocks_;  // Of each region's slowest worker.
  std::set<std::pair<wan::Peer, wan::Peer>> up_;
  std::map<wan::Peer, std::uint64_t> restarts_;
  std::vector<std::unique_ptr<Site>> sites_;
};

inline constexpr wan::Peer kA{0, 0}, kB{1, 0}, kC{2, 0};

inline core::JobConfig two_regions() { return small_job({{1}, {1}}); }

// One slice, at home in region 0.
class RegionSyncTest : public ::testing::Test {
 protected:
  void start(core::JobConfig config, core::Layout layout = layout_of({4})) {
    regions_ = std::make_unique<Regions>(std::move(config), std::move(layout));
    regions_->start();
  }
  Regions& regions() { return *regions_; }
  std::unique_ptr<Regions> regions_;
};

}  // namespace isthmus::server
