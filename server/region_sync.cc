#include "server/region_sync.h"

#include <algorithm>

#include "core/random.h"
#include "proto/meta.h"
#include "server/wan_messages.h"

namespace isthmus::server {
namespace {

constexpr std::size_t kStalenessBuckets = 512;
// What random numbers are for (core::mix_key).
constexpr std::uint32_t kContributions = 1;
constexpr std::uint32_t kGlobalDeltas = 2;

// One flag a region, as the pure side takes them.
class Flags {
 public:
  explicit Flags(std::size_t size) : values_(new bool[size]()), size_(size) {}
  bool& operator[](std::size_t i) { return values_[i]; }
  operator std::span<const bool>() const { return {values_.get(), size_}; }

 private:
  std::unique_ptr<bool[]> values_;
  std::size_t size_;
};

}  // namespace

struct RegionSync::State {
  // `key`: of the random numbers for what it tells its home.
  State(LocalSlice& local_slice, std::uint32_t home, std::uint64_t incarnation, const compression::Codec& up,
        std::uint64_t key)
      : local(local_slice), home_region(home), region(local_slice.slice().elements, incarnation, up, key) {}

  core::SliceId id() const { return local.slice().id; }

  LocalSlice& local;
  const std::uint32_t home_region;
  OuterRegion region;
  std::unique_ptr<OuterHome> home;  // If that is us.
  Step last_step = 0;               // When the last contribution started, ...
  core::TimePoint last_time{};
  std::uint64_t told_commits = 0;  // ... and what it covered.
  std::uint64_t untold_samples = 0;
  std::optional<core::TimePoint> round_deadline;  // Runs while something waits at the home.
  AnchorId least_anchor;                          // After a restart: what the home had told us before it.
  bool has_anchor = false;                        // Counted in slices_without_anchor_.
  bool final_applied = false;
  bool final_without_us = false;  // Our last contribution is not in it: it came too late.
};

RegionSync::RegionSync(const core::JobConfig& config, std::uint32_t region, std::uint64_t incarnation,
                       const core::Layout& layout, const Directory& directory,
                       std::vector<std::unique_ptr<LocalSlice>>& slices, const RegionTable& table, Send send)
    : config_(config),
      region_(region),
      incarnation_(incarnation),
      directory_(directory),
      table_(table),
      send_(std::move(send)),
      dense_(compression::make_codec(core::CodecConfig{core::CodecKind::kFp32, 1.0})),
      wan_codec_(compression::make_codec(config.compression.wan)),
      seen_generation_(table.peers().size(), 0),
      seen_incarnation_(table.peers().size(), 0),
      slices_without_anchor_(slices.size()) {
  counters_.staleness.resize(kStalenessBuckets, 0);
  const auto regions = static_cast<std::uint32_t>(config.regions.size());
  for (auto& slice : slices) {
    const core::SliceId id = slice->slice().id;
    const std::uint32_t home = directory.home_of(id);
    const std::uint64_t tensor_elements = layout.tensors()[slice->slice().tensor.value].elements();
    const compression::Codec& wan =
        tensor_elements < config.compression.dense_below_elements ? *dense_ : *wan_codec_;
    const auto key = [&](std::uint32_t use) {
      return core::mix_key(config.seed, use, std::uint64_t{region} << 32 | id);
    };
    // What a region tells itself costs nothing.
    states_.push_back(std::make_unique<State>(*slice, home, incarnation, home == region ? *dense_ : wan,
                                              key(kContributions)));
    if (home == region) {
      states_.back()->home = std::make_unique<OuterHome>(slice->slice().elements, regions, region, 1, wan,
                                                         config.sync.weight, key(kGlobalDeltas));
    }
  }
}

RegionSync::~RegionSync() = default;

RegionSync::State* RegionSync::find(core::SliceId slice) {
  const auto found = std::lower_bound(states_.begin(), states_.end(), slice,
                                      [](const auto& state, core::SliceId id) { return state->id() < id; });
  return found != states_.end() && (*found)->id() == slice ? found->get() : nullptr;
}

bool RegionSync::is_home(std::size_t index) const { return states_[index]->home != nullptr; }

void RegionSync::initialize(std::size_t index, core::TimePoint now) {
  now_ = now;
  State& state = *states_[index];
  if (!state.home || state.home->initialized()) return;
  // Whose link comes up later is told by poll_links().
  (void)state.home->join(region_, incarnation_);
  for (auto& outgoing : state.home->initialize(state.local.parameters().read()))
    dispatch(state, std::move(outgoing));
}

void RegionSync::save(std::size_t index, SavedSlice& saved) const {
  const State& state = *states_[index];
  saved.untold_samples += state.untold_samples;
  saved.anchor = state.region.has_anchor() ? state.region.anchor_id() : state.least_anchor;
  if (!state.home || !state.home->initialized()) return;
  saved.home = state.home->save();
  // Not folded: told again, since the home forgets what waits there.
  if (const auto in_flight = state.region.in_flight()) saved.untold_samples += in_flight->samples;
}

void RegionSync::restore(std::size_t index, const SavedSlice& saved) {
  State& state = *states_[index];
  state.least_anchor = saved.anchor;
  if (!state.home || !saved.home) return;
  state.home->restore(*saved.home, incarnation_);
  state.region.resume(state.home->global(), state.home->id());
  dispatch(state, state.home->join(region_, incarnation_));
  note_anchor(state);
}

void RegionSync::poll_links(core::TimePoint now) {
  now_ = now;
  for (std::size_t i = 0; i < seen_generation_.size(); ++i) {
    const RegionTable::Entry& entry = *table_.peers()[i];
    const std::uint64_t generation = entry.generation.load(std::memory_order_acquire);
    if (generation == seen_generation_[i]) continue;
    seen_generation_[i] = generation;
    const wan::Peer peer = entry.peer;
    const std::uint64_t incarnation = entry.incarnation.load();
    const std::uint64_t before = std::exchange(seen_incarnation_[i], incarnation);
    const bool restarted = before != 0 && before != incarnation;
    for (auto& state : states_) {
      if (directory_.server_of(peer.region, state->id()) != peer.server) continue;
      if (state->home_region == peer.region) {
        // A home that has lost what it was home to says so; one that has it sends a Reset.
        if (restarted && state->region.has_anchor())
          send(*state, peer.region, to_message(state->id(), state->region.ack()));
        else if (const auto contribution = state->region.in_flight())
          send(*state, peer.region, to_message(state->id(), *contribution, clock_));
      } else if (state->home) {
        dispatch(*state, state->home->join(peer.region, incarnation));
      }
    }
  }
}

Status RegionSync::receive(wan::Peer from, const proto::Message& message, core::TimePoint now,
                           std::optional<Step>& sender_clock) {
  now_ = now;
  State* state = message.request_id <= ~core::SliceId{0}
                     ? find(static_cast<core::SliceId>(message.request_id))
                     : nullptr;
  if (state == nullptr)
    return {ErrorCode::kProtocol, "slice " + std::to_string(message.request_id) + " is not here"};
  if (directory_.server_of(from.region, state->id()) != from.server)
    return {ErrorCode::kProtocol,
            "slice " + std::to_string(message.request_id) + " is not held by the sender"};
  const bool for_home = message.kind == proto::Kind::kContribution ||
                        message.kind == proto::Kind::kGlobalDeltaAck ||
                        message.kind == proto::Kind::kResetRequest;
  return for_home ? receive_as_home(*state, from, message, sender_clock)
                  : receive_as_region(*state, from, message, sender_clock);
}

Status RegionSync::receive_as_home(State& state, wan::Peer from, const proto::Message& message,
                                   std::optional<Step>& sender_clock) {
  if (!state.home) return {ErrorCode::kProtocol, "this region is not the slice's home"};
  if (message.kind == proto::Kind::kContribution) {
    Step clock = 0;
    const auto contribution = to_contribution(message, clock);
    if (!contribution.ok()) return contribution.status();
    if (!state.home->initialized()) return say_lost(state, from.region);
    sender_clock = clock;
    const auto received = state.home->receive(from.region, *contribution);
    if (!received.ok()) return received.status();
    if (*received == OuterHome::Received::kDuplicate) dispatch(state, state.home->repeat(from.region));
    if (*received == OuterHome::Received::kRefused) dispatch(state, state.home->reset(from.region));
    close_round(state);
    return {};
  }
  const auto ack = to_ack(message);
  if (!ack.ok()) return ack.status();
  if (!state.home->initialized()) return say_lost(state, from.region);
  if (message.kind == proto::Kind::kResetRequest) {
    ++counters_.resets;
    dispatch(state, state.home->reset(from.region));
  } else {
    dispatch(state, state.home->acknowledge(from.region, *ack));
  }
  return {};
}

// Somebody holds an anchor that only an earlier life of ours can have told.
Status RegionSync::say_lost(State& state, std::uint32_t region) {
  send(state, region,
       proto::make_refusal(state.id(), proto::REFUSE_NOT_READY,
                           "has restarted without the parameters that it "
                           "was home to"));
  return {ErrorCode::kFailed,
          "this server has restarted without the parameters that it was home to, and region " +
              config_.regions[region].name +
              " goes on with them: give it its checkpoints (checkpoint.directory), or "
              "start the job again"};
}

Status RegionSync::receive_as_region(State& state, wan::Peer from, const proto::Message& message,
                                     std::optional<Step>& sender_clock) {
  if (from.region != state.home_region) return {ErrorCode::kProtocol, "the sender is not the slice's home"};
  Step clock = 0;
  bool final = false;
  bool all_told = false;
  Result<OuterRegion::Outcome> outcome = OuterRegion::Outcome::kIgnored;
  if (message.kind == proto::Kind::kGlobalDelta) {
    const auto delta = to_global_delta(message, clock);
    if (!delta.ok()) return delta.status();
    const bool expected = state.region.has_anchor() && delta->base == state.region.anchor_id();
    outcome = state.region.apply(*delta, state.local.parameters());
    if (expected && outcome.ok() && *outcome == OuterRegion::Outcome::kNeedReset)
      ++counters_.checksum_mismatches;
  } else if (message.kind == proto::Kind::kReset) {
    const auto reset = to_reset(message, clock);
    if (!reset.ok()) return reset.status();
    // Homes never go back: after a restart they are in a later epoch.
    if (!state.region.has_anchor() && reset->id < state.least_anchor)
      return {ErrorCode::kFailed, "region " + config_.regions[from.region].name + ", server " +
                                      std::to_string(from.server) +
                                      " has begun anew, but this server goes on from a checkpoint: give both "
                                      "their checkpoints (checkpoint.directory), or neither"};
    final = reset->final;
    all_told = reset->all_told;
    outcome = state.region.apply(*reset, state.local.parameters());
  } else if (message.kind == proto::Kind::kRefuse) {
    if (!state.region.has_anchor()) return {ErrorCode::kProtocol, "unexpected Refuse"};
    return {ErrorCode::kFailed,
            "region " + config_.regions[from.region].name + ", server " + std::to_string(from.server) + " " +
                proto::refusal_status(message).message() +
                ": give it its checkpoints (checkpoint.directory), or start the job again"};
  } else {
    return {ErrorCode::kProtocol, "unexpected " + std::string(to_string(message.kind))};
  }
  sender_clock = clock;
  if (outcome.ok()) applied(state, *outcome, final);
  if (outcome.ok() && *outcome == OuterRegion::Outcome::kApplied && final) state.final_without_us = !all_told;
  // What cannot be applied would be repeated for ever, the same bytes: only a Reset mends it.
  if (!outcome.ok() || *outcome == OuterRegion::Outcome::kNeedReset) {
    ++counters_.resets;
    send(state, state.home_region,
         reset_request(state.id(), state.region.ack(), "base or checksum does not match"));
  } else {
    send(state, state.home_region, to_message(state.id(), state.region.ack()));
  }
  return outcome.status();
}

void RegionSync::applied(State& state, OuterRegion::Outcome outcome, bool final) {
  if (outcome != OuterRegion::Outcome::kApplied) return;
  note_anchor(state);
  state.local.changed();
  state.final_applied |= final;
  all_ended_ |= final;
  counters_.newest_round = std::max(counters_.newest_round, state.region.anchor_id().round);
  const Step slowest = table_.slowest_other();
  if (slowest == wan::kFinishedClock || draining_) return;
  const Step ahead = clock_ > slowest ? clock_ - slowest : 0;
  ++counters_.staleness[std::min<std::size_t>(ahead, kStalenessBuckets - 1)];
}

void RegionSync::note_anchor(State& state) {
  if (!std::exchange(state.has_anchor, true)) --slices_without_anchor_;
}

void RegionSync::dispatch(State& state, std::optional<OuterHome::Outgoing> outgoing) {
  if (outgoing) dispatch(state, std::move(*outgoing));
}

void RegionSync::dispatch(State& state, OuterHome::Outgoing outgoing) {
  if (outgoing.region != region_) {
    std::visit(
        [&](const auto& message) {
          send(state, outgoing.region, to_message(state.id(), message, outgoing.region, clock_));
        },
        outgoing.message);
    return;
  }
  // To ourselves: the same messages, without a wire.
  const bool final =
      std::holds_alternative<Reset>(outgoing.message) && std::get<Reset>(outgoing.message).final;
  const auto outcome =
      std::visit([&](const auto& message) { return state.region.apply(message, state.local.parameters()); },
                 outgoing.message);
  if (!outcome.ok()) return;
  applied(state, *outcome, final);
  dispatch(state, state.home->acknowledge(region_, state.region.ack()));
}

void RegionSync::send(State& state, std::uint32_t region, proto::Message message) {
  send_({region, directory_.server_of(region, state.id())}, std::move(message));
}

bool RegionSync::due(const State& state) const {
  if (!state.region.idle()) return false;
  if (draining_) return true;
  if (state.local.commits() == state.told_commits) return false;
  if (config_.sync.strategy == core::SyncStrategy::kLockstep) return true;
  const core::SyncConfig& sync = config_.sync;
  return (sync.every_steps > 0 && clock_ >= state.last_step + sync.every_steps) ||
         (sync.every_time.count() > 0 && now_ - state.last_time >= sync.every_time);
}

void RegionSync::advance(Step clock, core::TimePoint now) {
  now_ = now;
  clock_ = clock;
  for (auto& state : states_) {
    if (due(*state)) start(*state, draining_);
    close_round(*state);
    if (draining_ && state->home && state->home->initialized() && !state->home->finished()) {
      Flags expected(config_.regions.size());
      for (std::uint32_t r = 0; r < config_.regions.size(); ++r)
        expected[r] = r == region_ || !table_.region_lost(r, now_, config_.limits.operation_timeout);
      if (state->home->all_final(expected)) {
        for (auto& outgoing : state->home->finish()) dispatch(*state, std::move(outgoing));
      }
    }
  }
}

void RegionSync::start(State& state, bool final) {
  state.last_step = clock_;
  state.last_time = now_;
  state.told_commits = state.local.commits();
  state.untold_samples += state.local.take_untold_samples();
  auto contribution = state.region.start(state.local.parameters().read(), state.untold_samples, final);
  if (!contribution.ok() && final) {
    // What is not finite can never be told, and without a last word from us the job would not end.
    const auto anchor = state.region.anchor();
    std::copy_n(anchor.get(), state.local.slice().elements, state.local.parameters().write().begin());
    state.local.changed();
    contribution = state.region.start(state.local.parameters().read(), 0, final);
  }
  if (!contribution.ok()) return;  // Not finite: told again when it is.
  state.untold_samples = 0;
  if (state.home_region != region_) {
    send(state, state.home_region, to_message(state.id(), *contribution, clock_));
    return;
  }
  if (state.home->receive(region_, *contribution).ok()) close_round(state);
}

bool RegionSync::takes_part(const State& state, std::uint32_t region) const {
  if (region != region_ && !table_.region_up(region)) return false;
  Flags only(config_.regions.size());
  only[region] = true;
  return !state.home->all_final(only);
}

void RegionSync::close_round(State& state) {
  if (!state.home || state.home->finished()) return;
  if (state.home->waiting() == 0) {
    state.round_deadline.reset();
    return;
  }
  // lockstep waits for whoever is reachable, however long that takes.
  if (!state.round_deadline && config_.sync.strategy != core::SyncStrategy::kLockstep)
    state.round_deadline = now_ + config_.sync.deadline;
  Flags expected(config_.regions.size());
  for (std::uint32_t r = 0; r < config_.regions.size(); ++r) expected[r] = takes_part(state, r);
  const bool late = state.round_deadline && now_ >= *state.round_deadline;
  if (!state.home->may_close(expected, late)) return;
  state.round_deadline.reset();
  for (auto& outgoing : state.home->close(expected)) dispatch(state, std::move(outgoing));
}

std::optional<core::TimePoint> RegionSync::next_deadline() const {
  std::optional<core::TimePoint> next;
  const auto consider = [&](core::TimePoint time) { next = next ? std::min(*next, time) : time; };
  for (const auto& state : states_) {
    if (state->round_deadline) consider(*state->round_deadline);
    if (config_.sync.every_time.count() > 0 && state->region.idle() &&
        state->local.commits() != state->told_commits)
      consider(state->last_time + config_.sync.every_time);
  }
  return next;
}

bool RegionSync::settled(std::size_t index) const {
  const State& state = *states_[index];
  return config_.sync.strategy != core::SyncStrategy::kLockstep || draining_ ||
         (state.region.idle() && state.local.commits() == state.told_commits);
}

bool RegionSync::halted(Step clock) const {
  if (config_.sync.then != core::HardBoundAction::kHalt) return false;
  const Step slowest = table_.slowest_other();
  return clock >= slowest && clock - slowest >= config_.sync.hard_staleness;
}

void RegionSync::drain(core::TimePoint now) {
  draining_ = true;
  advance(clock_, now);
}

bool RegionSync::began(const State& state) const {
  return state.home ? state.home->initialized() : state.region.has_anchor() || state.least_anchor.epoch > 0;
}

bool RegionSync::done(const State& state, core::TimePoint now) const {
  const core::Duration grace = config_.limits.operation_timeout;
  if (!began(state)) return true;
  if (!state.home) return state.final_applied || table_.region_lost(state.home_region, now, grace);
  if (!state.home->finished()) return false;
  for (std::uint32_t r = 0; r < config_.regions.size(); ++r) {
    if (r != region_ && !state.home->final_acknowledged(r) && !table_.region_lost(r, now, grace))
      return false;
  }
  return true;
}

bool RegionSync::was_without(const State& state, std::uint32_t region) const {
  if (!began(state)) return false;
  if (!state.home)
    return (region == state.home_region && !state.final_applied) ||
           (region == region_ && state.final_without_us);
  if (region == region_) return false;
  Flags only(config_.regions.size());
  only[region] = true;
  return !state.home->all_final(only) || !state.home->final_acknowledged(region);
}

std::optional<std::vector<std::uint32_t>> RegionSync::drained(core::TimePoint now) const {
  const auto is_done = [&](const auto& state) { return done(*state, now); };
  if (!draining_ || !std::all_of(states_.begin(), states_.end(), is_done)) return std::nullopt;
  std::vector<std::uint32_t> without;
  for (std::uint32_t region = 0; region < config_.regions.size(); ++region) {
    const auto misses = [&](const auto& state) { return was_without(*state, region); };
    if (std::any_of(states_.begin(), states_.end(), misses)) without.push_back(region);
  }
  return without;
}

AnchorId RegionSync::anchor_id(std::size_t index) const { return states_[index]->region.anchor_id(); }

core::VersionedFloats::Reference RegionSync::anchor(std::size_t index) const {
  return states_[index]->region.anchor();
}

SyncCounters RegionSync::counters() const {
  SyncCounters counters = counters_;
  for (const auto& state : states_) {
    if (!state->home) continue;
    counters.folded += state->home->folded_count();
    counters.duplicates += state->home->duplicate_count();
    counters.overflows += state->home->overflow_count();
  }
  return counters;
}

double RegionSync::untold_squared() const {
  double sum = 0;
  for (const auto& state : states_) {
    if (state->region.has_anchor()) sum += state->region.untold_squared(state->local.parameters().read());
  }
  return sum;
}

}  // namespace isthmus::server
