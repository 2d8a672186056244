// Both sides of the `outer` protocol under thousands of random schedules: a network that loses, repeats and
// reorders, links that are cut, regions that are killed and come back. Workers add whole numbers, so what
// becomes of every step can be counted.

#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "core/random.h"
#include "tests/server/outer_support.h"

namespace isthmus::server {
namespace {

using core::CodecKind;
using Outcome = OuterRegion::Outcome;

constexpr std::size_t kElements = 8;
constexpr std::uint64_t kEpoch = 1;
constexpr std::uint64_t kSamples = 8;  // Of every contribution, so that all weights are equal.

using Sums = std::array<double, kElements>;
Sums& operator+=(Sums& sums, const Sums& more) {
  for (std::size_t i = 0; i < kElements; ++i) sums[i] += more[i];
  return sums;
}

struct Options {
  std::uint32_t regions = 2;
  CodecKind codec = CodecKind::kFp32;
  bool restarts = false;
  bool home_restarts = false;  // From checkpoints.
  core::RegionWeight weight = core::RegionWeight::kEqual;
  int events = 200;
};

struct ResetRequest {};
// Between `region` and the home; the kind of message tells the direction.
struct Packet {
  std::uint32_t region = 0;
  std::variant<Contribution, GlobalDeltaAck, ResetRequest, GlobalDelta, Reset> message;
};

class World {
 public:
  World(std::uint64_t seed, const Options& options)
      : random_(seed, {1, 0, 0}),
        options_(options),
        codec_(codec_of(options.codec)),
        home_(std::in_place, kElements, options.regions, 0, kEpoch, *codec_, options.weight) {
    for (std::uint32_t r = 0; r < options.regions; ++r) regions_.emplace_back(*codec_);
    home_->initialize(std::vector<float>(kElements, 1.0f));
    expected_.fill(1.0);
    for (std::uint32_t r = 0; r < options.regions; ++r) connect(r);
  }

  void run(int events) {
    for (int i = 0; i < events; ++i) event();
  }

  // The network heals, everybody tells the rest, and the home ends the job.
  void end() {
    ending_ = true;
    for (int round = 0; round < 200; ++round) {
      lossy_ = round < 3;
      for (std::uint32_t r = 0; r < options_.regions; ++r) cut(r), connect(r);
      settle();
      if (done()) return;
    }
    FAIL() << "no agreement";
  }

  void check() {
    const std::vector<float> global = floats_of(home_->global(), kElements);
    for (const Region& region : regions_) {
      EXPECT_EQ(std::vector<float>(region.parameters.read().begin(), region.parameters.read().end()), global);
      EXPECT_EQ(floats_of(region.side->anchor(), kElements), global);
    }
    if (options_.home_restarts) return check_shares(global);
    // int8 and thirds do not divide evenly; all else is exact.
    const double tolerance = exact() ? 0.0 : 2e-3;
    for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(global[i], expected_[i], tolerance);
    for (Region& region : regions_) check_ledger(region, tolerance);
    EXPECT_EQ(home_->overflow_count(), 0u);
    if (!options_.restarts) {
      EXPECT_EQ(needed_resets_, 0);  // Anchor and view never disagreed.
    }
  }
  bool exact() const { return even_ && options_.codec != CodecKind::kInt8; }

 private:
  struct Region {
    explicit Region(const compression::Codec& codec)
        : side(std::in_place, kElements, 1, codec), parameters(kElements) {}
    std::optional<OuterRegion> side;
    core::VersionedFloats parameters;
    std::uint64_t incarnation = 1;
    bool linked = false;
    // The ledger: every step that a worker made is folded once, or was told to nobody when the process died.
    Sums trained{}, folded{}, died{};
    std::map<ContributionId, Sums> told;
    std::set<ContributionId> accepted;
  };
  struct Waiting {
    std::uint32_t region;
    Sums values;
  };

  // Nothing lost, nothing twice.
  void check_ledger(Region& region, double tolerance) {
    Sums accounted = region.folded;
    accounted += region.died;
    for (const auto& [id, values] : region.told) {
      if (region.accepted.contains(id)) continue;
      EXPECT_LT(id.incarnation, region.incarnation) << "a living region's contribution was lost";
      accounted += values;
    }
    for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(region.trained[i], accounted[i], tolerance);
  }

  // Each region has elements of its own and only adds: no step twice, and only those lost that were made or
  // folded after the checkpoint that the home went back to.
  void check_shares(const std::vector<float>& global) {
    for (std::size_t i = 0; i < kElements; ++i) {
      const double trained = regions_[i % options_.regions].trained[i];
      EXPECT_LE(global[i] - 1, trained) << "a step counts twice";
      EXPECT_GE(global[i] - 1, trained - lost_[i]) << "a step is lost";
    }
  }

  std::uint32_t pick(std::size_t bound) { return random_.below(static_cast<std::uint32_t>(bound)); }
  bool chance(double share) { return random_.uniform() < share; }

  void event() {
    const std::uint32_t r = pick(options_.regions);
    Region& region = regions_[r];
    switch (pick(16)) {
      case 0:
      case 1:
      case 2: return train(r);
      case 3:
      case 4: return start(r, false);
      case 5:
      case 6:
      case 7:
      case 8:
      case 9: return deliver_any();
      case 10:
      case 11: return close(chance(0.2));
      case 12: return region.linked ? cut(r) : connect(r);
      case 13: return connect(r);
      case 14:
        if (chance(0.3)) send(r, ResetRequest{});
        return;
      default:
        if (options_.home_restarts) return chance(0.5) ? checkpoint() : restart_home();
        if (options_.restarts && r != 0 && chance(0.3)) restart(r);
    }
  }

  void train(std::uint32_t r) {
    Region& region = regions_[r];
    if (!region.side->has_anchor()) return;
    for (std::size_t i = 0; i < kElements; ++i) {
      if (options_.home_restarts && i % options_.regions != r) continue;
      const auto step = static_cast<float>(pick(4)) - (options_.home_restarts ? 0.0f : 1.0f);
      region.parameters.write()[i] += step;
      region.trained[i] += step;
    }
  }

  void start(std::uint32_t r, bool final) {
    Region& region = regions_[r];
    if (!region.side->idle()) return;
    const auto started = region.side->start(region.parameters.read(), kSamples, final);
    ASSERT_TRUE(started.ok()) << started.status().to_string();
    region.told[started->id] = sums_of(*started);
    send(r, *started);
  }

  static Sums sums_of(const Contribution& contribution) {
    const std::vector<float> values = decoded(contribution.codec, contribution.record, kElements);
    Sums sums{};
    std::copy(values.begin(), values.end(), sums.begin());
    return sums;
  }

  void restart(std::uint32_t r) {
    Region& region = regions_[r];
    if (region.side->has_anchor()) {
      // Told to nobody: parameters - anchor, less what is in flight and may still arrive.
      const std::span<const float> p = region.parameters.read();
      for (std::size_t i = 0; i < kElements; ++i) region.died[i] += p[i] - region.side->anchor()[i];
      if (const auto in_flight = region.side->in_flight())
        for (std::size_t i = 0; i < kElements; ++i) region.died[i] -= region.told[in_flight->id][i];
    }
    cut(r);
    ++region.incarnation;
    region.side.emplace(kElements, region.incarnation, *codec_);
    region.parameters = core::VersionedFloats(kElements);
  }

  void checkpoint() {
    const std::span<const float> own = regions_[0].parameters.read();
    saved_ = {home_->save(), {own.begin(), own.end()}};
  }

  void restart_home() {
    if (!saved_) return;
    const std::vector<float> global = floats_of(home_->global(), kElements);
    const std::vector<float> then = floats_of(saved_->home.global, kElements);
    Region& own = regions_[0];
    for (std::size_t i = 0; i < kElements; ++i) {
      lost_[i] += i % options_.regions == 0 ? own.parameters.read()[i] - saved_->own[i] : global[i] - then[i];
    }
    for (std::uint32_t r = 0; r < options_.regions; ++r) cut(r);
    waiting_.clear();
    ++own.incarnation;
    home_.emplace(kElements, options_.regions, 0, kEpoch, *codec_, options_.weight);
    home_->restore(saved_->home, ++epoch_);
    own.side.emplace(kElements, own.incarnation, *codec_);
    own.side->resume(home_->global(), home_->id());
    std::copy(saved_->own.begin(), saved_->own.end(), own.parameters.write().begin());
    for (std::uint32_t r = 0; r < options_.regions; ++r)
      if (r == 0 || chance(0.5)) connect(r);
  }

  // ---- the network

  template <typename Message>
  void send(std::uint32_t r, Message message) {
    if (r == 0) return handle({r, std::move(message)});  // The home's own region: no wire.
    if (regions_[r].linked) network_.push_back({r, std::move(message)});
  }
  void send(const std::optional<OuterHome::Outgoing>& outgoing) {
    if (outgoing)
      std::visit([&](const auto& message) { send(outgoing->region, message); }, outgoing->message);
  }

  // Most of what is under way is lost; some is merely very late.
  void cut(std::uint32_t r) {
    regions_[r].linked = false;
    std::erase_if(network_, [&](const Packet& p) { return p.region == r && (ending_ || chance(0.7)); });
  }

  void connect(std::uint32_t r) {
    regions_[r].linked = true;
    send(home_->join(r, regions_[r].incarnation));
    if (const auto contribution = regions_[r].side->in_flight()) send(r, *contribution);
  }

  void deliver_any() {
    if (network_.empty()) return;
    const std::uint32_t at = pick(network_.size());
    const Packet packet = network_[at];
    if (!regions_[packet.region].linked) return;
    if (!chance(0.2)) network_.erase(network_.begin() + at);  // Else it comes once more.
    if (!chance(0.1)) handle(packet);
  }

  void handle(const Packet& packet) {
    std::visit([&](const auto& message) { handle(packet.region, message); }, packet.message);
  }
  void handle(std::uint32_t r, const Contribution& contribution) {
    const auto received = home_->receive(r, contribution);
    ASSERT_TRUE(received.ok()) << received.status().to_string();
    if (*received == OuterHome::Received::kDuplicate) send(home_->repeat(r));
    if (*received != OuterHome::Received::kAccepted) return;
    // A home that has gone back gives the numbers again.
    EXPECT_TRUE(regions_[r].accepted.insert(contribution.id).second || options_.home_restarts)
        << "accepted twice";
    waiting_.push_back({r, sums_of(contribution)});
  }
  void handle(std::uint32_t r, const GlobalDeltaAck& ack) { send(home_->acknowledge(r, ack)); }
  void handle(std::uint32_t r, const ResetRequest&) { send(home_->reset(r)); }
  template <typename Message>
  void handle(std::uint32_t r, const Message& message) {
    Region& region = regions_[r];
    const auto outcome = region.side->apply(message, region.parameters);
    ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
    if (*outcome == Outcome::kNeedReset) {
      ++needed_resets_;
      send(r, ResetRequest{});
    } else {
      send(r, region.side->ack());
    }
  }

  // ---- rounds

  // Which regions the home believes alive.
  std::array<bool, 4> living() const {
    std::array<bool, 4> flags{};
    for (std::uint32_t r = 0; r < options_.regions; ++r) flags[r] = regions_[r].linked;
    return flags;
  }

  void close(bool deadline) {
    const std::array<bool, 4> flags = living();
    if (!home_->may_close(flags, deadline)) return;
    double all = 0;
    for (std::uint32_t r = 0; r < options_.regions; ++r) {
      double weight = 0;
      for (const Waiting& w : waiting_) weight += w.region == r;
      if (flags[r]) all += std::max(weight, 1.0);
    }
    const auto arrived = static_cast<double>(waiting_.size());
    const double divisor = 2 * arrived >= all ? arrived : all;
    even_ &= divisor == 1 || divisor == 2 || divisor == 4;
    for (const Waiting& w : waiting_) {
      regions_[w.region].folded += w.values;
      for (std::size_t i = 0; i < kElements; ++i) expected_[i] += w.values[i] / divisor;
    }
    waiting_.clear();
    for (const auto& outgoing : home_->close(flags)) send(outgoing);
  }

  void settle() {
    for (int i = 0; i < 10; ++i) {
      for (std::uint32_t r = 0; r < options_.regions; ++r) start(r, true);
      deliver_all();
      close(true);
    }
    if (!home_->finished() && home_->all_final(living()))
      for (const auto& outgoing : home_->finish()) send(outgoing);
    deliver_all();
  }

  void deliver_all() {
    for (int i = 0; i < 10000 && !network_.empty(); ++i) {
      const Packet packet = network_.front();
      network_.erase(network_.begin());
      if (!lossy_ || chance(0.6)) handle(packet);
    }
    EXPECT_TRUE(network_.empty()) << "two sides that answer each other for ever";
  }

  bool done() const {
    for (std::uint32_t r = 0; r < options_.regions; ++r)
      if (!home_->final_acknowledged(r)) return false;
    return true;
  }

  core::Random random_;
  Options options_;
  std::unique_ptr<const compression::Codec> codec_;
  std::optional<OuterHome> home_;
  std::deque<Region> regions_;
  std::vector<Packet> network_;
  std::vector<Waiting> waiting_;
  struct Saved {
    SavedHome home;
    std::vector<float> own;  // The home's region's parameters.
  };
  std::optional<Saved> saved_;
  std::uint64_t epoch_ = kEpoch;
  Sums lost_{};       // At most.
  Sums expected_{};   // What global is to be.
  bool even_ = true;  // All divisors were powers of two.
  bool ending_ = false;
  bool lossy_ = false;
  int needed_resets_ = 0;
};

// Sanitizers make each schedule some eighty times slower; they look for other things than a rare order.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kFewer = 40;
#else
constexpr int kFewer = 1;
#endif

// Runs `schedules` of them; returns the share that could be checked to the last bit.
double explore(const Options& options, int schedules) {
  int run = 0, exact = 0;
  for (int seed = 0; seed * kFewer < schedules && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "regions " << options.regions << " seed " << seed);
    World world(static_cast<std::uint64_t>(seed), options);
    world.run(options.events);
    world.end();
    world.check();
    ++run;
    exact += world.exact();
  }
  return static_cast<double>(exact) / run;
}

TEST(OuterProtocolTest, Lossless) {
  EXPECT_EQ(explore({.regions = 1}, 1000), 1.0);
  EXPECT_EQ(explore({.regions = 2}, 1000), 1.0);
  EXPECT_GT(explore({.regions = 4}, 1000), 0.02);
  explore({.regions = 3}, 1000);
  explore({.regions = 4, .weight = core::RegionWeight::kSamples}, 500);
}

TEST(OuterProtocolTest, Topk) {
  EXPECT_EQ(explore({.regions = 2, .codec = CodecKind::kTopk}, 1000), 1.0);
  explore({.regions = 4, .codec = CodecKind::kTopk}, 1000);
}

// Long enough for checksums: anchors and views stay the same bits.
TEST(OuterProtocolTest, LongTopk) {
  explore({.regions = 2, .codec = CodecKind::kTopk, .events = 4000}, 50);
  explore({.regions = 4, .codec = CodecKind::kTopk, .events = 4000}, 50);
}

TEST(OuterProtocolTest, Int8) {
  explore({.regions = 2, .codec = CodecKind::kInt8}, 700);
  explore({.regions = 3, .codec = CodecKind::kInt8}, 700);
}

TEST(OuterProtocolTest, Restarts) {
  for (std::uint32_t regions : {2, 3, 4}) explore({.regions = regions, .restarts = true}, 1000);
  explore({.regions = 3, .codec = CodecKind::kTopk, .restarts = true}, 1000);
  explore({.regions = 2, .codec = CodecKind::kInt8, .restarts = true}, 500);
}

TEST(OuterProtocolTest, TheHomeRestartsFromCheckpoints) {
  for (std::uint32_t regions : {1, 2, 4}) {
    explore({.regions = regions, .home_restarts = true, .weight = core::RegionWeight::kUndivided}, 1000);
    explore({.regions = regions,
             .codec = CodecKind::kTopk,
             .home_restarts = true,
             .weight = core::RegionWeight::kUndivided},
            1000);
  }
}

}  // namespace
}  // namespace isthmus::server
