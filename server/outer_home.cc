#include "server/outer_home.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/random.h"
#include "server/outer_record.h"

namespace isthmus::server {
namespace {

// Every how many GlobalDeltas a region's anchor is checked to be the same bits as the view of it.
constexpr std::uint64_t kDeltasBetweenChecksums = 16;

bool flag(std::span<const bool> flags, std::uint32_t region) {
  return region < flags.size() && flags[region];
}

}  // namespace

OuterHome::OuterHome(std::size_t elements, std::uint32_t regions, std::uint32_t self, std::uint64_t epoch,
                     const compression::Codec& codec, core::RegionWeight weight, std::uint64_t key)
    : elements_(elements),
      self_(self),
      codec_(codec),
      weight_(weight),
      key_(key),
      id_{epoch, 0},
      peers_(regions) {}

bool OuterHome::joined(std::uint32_t region) const noexcept {
  return region < peers_.size() && peers_[region].received.incarnation != 0;
}

std::span<const float> OuterHome::values_of(const Reference& reference) const noexcept {
  return {reference.get(), elements_};
}

std::vector<OuterHome::Outgoing> OuterHome::initialize(std::span<const float> values) {
  ISTHMUS_CHECK(!initialized() && values.size() == elements_);
  auto copy = std::make_shared_for_overwrite<float[]>(elements_);
  std::copy(values.begin(), values.end(), copy.get());
  global_ = std::move(copy);
  std::vector<Outgoing> out;
  for (std::uint32_t region = 0; region < peers_.size(); ++region)
    if (joined(region)) out.push_back(tell_reset(region));
  return out;
}

std::optional<OuterHome::Outgoing> OuterHome::join(std::uint32_t region, std::uint64_t incarnation) {
  if (region >= peers_.size() || incarnation == 0) return std::nullopt;
  Peer& peer = peers_[region];
  if (incarnation < peer.received.incarnation) return std::nullopt;
  if (incarnation == peer.received.incarnation) return repeat(region);
  // What an earlier life sent and we received stays in its round: nothing received is thrown away.
  Peer born;
  born.received = born.folded = {incarnation, 0};
  born.weight = peer.weight;
  // What it may still do, once all have ended, is not waited for: it lost nothing that it had told.
  born.final_folded = finished_ && peer.final_folded;
  born.codec_state = {.key = core::mix_key(key_, region, 0), .records = peer.codec_state.records};
  peer = std::move(born);
  if (!initialized()) return std::nullopt;
  return tell_reset(region);
}

Result<OuterHome::Received> OuterHome::receive(std::uint32_t region, const Contribution& contribution) {
  if (!initialized() || !joined(region)) return Received::kRefused;
  ContributionId& last = peers_[region].received;
  const ContributionId& id = contribution.id;
  if (finished_ || id <= last) {
    ++duplicate_count_;
    return Received::kDuplicate;
  }
  if (id.incarnation != last.incarnation || id.seq != last.seq + 1 || contribution.base.epoch != id_.epoch)
    return Received::kRefused;
  // Looked at now, while it can still be refused: a round must not fail.
  ISTHMUS_RETURN_IF_ERROR(check_record(contribution.codec, contribution.record, elements_));
  last = id;
  waiting_.push_back({region, contribution});
  return Received::kAccepted;
}

bool OuterHome::has_waiting(std::uint32_t region) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& w) { return w.region == region; });
}

bool OuterHome::may_close(std::span<const bool> expected, bool deadline_passed) const {
  if (waiting_.empty() || finished_) return false;
  if (deadline_passed) return true;
  for (std::uint32_t region = 0; region < peers_.size(); ++region)
    if (flag(expected, region) && !has_waiting(region)) return false;
  return true;
}

// A contribution holds all that was never told, not only its samples' part: what the codec lost of earlier
// steps too. So one without samples, and a final one, which is all the rest, weigh no less than the
// region's last. Where no weight is known at all, it is that of the others.
std::vector<double> OuterHome::waiting_weights() const {
  std::vector<double> weights;
  double sum = 0, known = 0;
  for (const auto& [region, contribution] : waiting_) {
    double weight = static_cast<double>(contribution.samples);
    if (contribution.final || contribution.samples == 0) weight = std::max(weight, peers_[region].weight);
    if (weight_ != core::RegionWeight::kSamples) weight = 1;
    if (weight > 0) sum += weight, ++known;
    weights.push_back(weight);
  }
  const double usual = known > 0 ? sum / known : 1;
  for (double& weight : weights)
    if (weight == 0) weight = usual;
  return weights;
}

double OuterHome::divisor(std::span<const double> weights, std::span<const bool> living) const {
  if (weight_ == core::RegionWeight::kUndivided) return 1;
  double arrived = 0, all = 0;
  for (double weight : weights) arrived += weight;
  const double usual = arrived / static_cast<double>(weights.size());
  for (std::uint32_t region = 0; region < peers_.size(); ++region) {
    if (!flag(living, region)) continue;
    if (!has_waiting(region)) {
      const double last = weight_ == core::RegionWeight::kEqual ? 1 : peers_[region].weight;
      all += last > 0 ? last : usual;
      continue;
    }
    for (std::size_t i = 0; i < waiting_.size(); ++i)
      if (waiting_[i].region == region) all += weights[i];
  }
  return 2 * arrived >= all ? arrived : all;
}

void OuterHome::fold(std::span<const bool> living) {
  // In one order, whatever the order of arrival: the same contributions give the same bits.
  std::sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
    return std::tie(a.region, a.contribution.id) < std::tie(b.region, b.contribution.id);
  });
  const std::vector<double> weights = waiting_weights();
  const double by = divisor(weights, living);
  auto sum = std::make_shared_for_overwrite<float[]>(elements_);
  const std::span<float> to(sum.get(), elements_);
  std::copy_n(global_.get(), elements_, to.begin());
  bool good = true;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const auto& [region, contribution] = waiting_[i];
    const auto decoder = compression::find_decoder(contribution.codec);
    good = good &&
           (*decoder)->accumulate(contribution.record.view, static_cast<float>(weights[i] / by), to).ok();
    Peer& peer = peers_[region];
    peer.folded = std::max(peer.folded, contribution.id);
    if (contribution.samples > 0) peer.weight = static_cast<double>(contribution.samples);
    if (contribution.final && contribution.id.incarnation == peer.received.incarnation)
      peer.final_folded = true;
  }
  folded_count_ += waiting_.size();
  waiting_.clear();
  ++id_.round;
  ++changes_;
  // Finite contributions whose sum is not: the job has diverged. Global stays usable and the round counts
  // as folded, since sending it again would end the same way.
  if (good && compression::all_finite(to))
    global_ = std::move(sum);
  else
    ++overflow_count_;
}

std::vector<OuterHome::Outgoing> OuterHome::close(std::span<const bool> living) {
  std::vector<Outgoing> out;
  if (waiting_.empty() || finished_) return out;
  fold(living);
  std::vector<Difference> made;
  for (std::uint32_t region = 0; region < peers_.size(); ++region)
    if (joined(region) && !peers_[region].unacknowledged) out.push_back(tell(region, made));
  return out;
}

// Encodes global - view; nothing when the difference cannot be told as a delta (it overflows).
std::optional<OuterHome::Difference> OuterHome::difference_to(const Peer& peer) const {
  auto moved = std::make_shared_for_overwrite<float[]>(elements_);
  Difference made{.from = peer.view,
                  .to = moved,
                  .codec = static_cast<std::uint8_t>(codec_.id()),
                  .record = {},
                  .codec_state = peer.codec_state};
  const std::span<float> to(moved.get(), elements_);
  auto record = encode_record(codec_, made.codec_state, values_of(global_), values_of(peer.view), to);
  if (!record.ok() || !compression::all_finite(to)) return std::nullopt;
  made.record = *std::move(record);
  return made;
}

OuterHome::Outgoing OuterHome::tell(std::uint32_t region, std::vector<Difference>& made) {
  if (region == self_) return tell_reset(region);
  Peer& peer = peers_[region];
  auto found =
      std::find_if(made.begin(), made.end(), [&](const Difference& d) { return d.from == peer.view; });
  if (found == made.end()) {
    std::optional<Difference> difference = difference_to(peer);
    if (!difference) return tell_reset(region);
    found = made.insert(made.end(), *std::move(difference));
  }
  GlobalDelta delta{.base = peer.view_id,
                    .id = id_,
                    .folded = peer.folded,
                    .checksum = {},
                    .codec = found->codec,
                    .record = found->record};
  if (++peer.deltas % kDeltasBetweenChecksums == 0) delta.checksum = anchor_checksum(values_of(found->to));
  peer.view = found->to;
  peer.view_id = id_;
  peer.told = changes_;
  peer.codec_state = found->codec_state;
  peer.unacknowledged = delta;
  return {region, std::move(delta)};
}

OuterHome::Outgoing OuterHome::tell_reset(std::uint32_t region) {
  Peer& peer = peers_[region];
  Reset reset{.id = id_,
              .folded = peer.folded,
              .final = finished_,
              .all_told = peer.final_folded,
              .values = {global_, std::as_bytes(values_of(global_))}};
  peer.view = global_;
  peer.view_id = id_;
  peer.told = changes_;
  peer.unacknowledged = reset;
  return {region, std::move(reset)};
}

std::optional<OuterHome::Outgoing> OuterHome::acknowledge(std::uint32_t region, const GlobalDeltaAck& ack) {
  if (!joined(region)) return std::nullopt;
  Peer& peer = peers_[region];
  // Of an earlier life, or not (or no longer) the answer to what is under way.
  if (ack.incarnation != peer.received.incarnation) return std::nullopt;
  if (!peer.unacknowledged || ack.id != peer.view_id) return std::nullopt;
  peer.unacknowledged.reset();
  if (peer.told == changes_) return std::nullopt;
  std::vector<Difference> made;
  return tell(region, made);
}

std::optional<OuterHome::Outgoing> OuterHome::reset(std::uint32_t region) {
  if (!initialized() || !joined(region)) return std::nullopt;
  Peer& peer = peers_[region];
  const bool under_way = peer.unacknowledged && std::holds_alternative<Reset>(*peer.unacknowledged);
  if (under_way && peer.view_id == id_) return repeat(region);
  // A delta may have brought the region to an anchor of this very name, with other bits: the codec's. A
  // name of its own lets the region, and us, tell one from the other.
  ++id_.round;
  return tell_reset(region);
}

std::optional<OuterHome::Outgoing> OuterHome::repeat(std::uint32_t region) const {
  if (!joined(region) || !peers_[region].unacknowledged) return std::nullopt;
  return Outgoing{region, *peers_[region].unacknowledged};
}

bool OuterHome::all_final(std::span<const bool> expected) const {
  for (std::uint32_t region = 0; region < peers_.size(); ++region)
    if (flag(expected, region) && !peers_[region].final_folded) return false;
  return true;
}

std::vector<OuterHome::Outgoing> OuterHome::finish() {
  std::vector<Outgoing> out;
  if (!initialized() || finished_) return out;
  if (!waiting_.empty()) fold({});
  ++id_.round;  // A name of its own, as in reset().
  finished_ = true;
  for (std::uint32_t region = 0; region < peers_.size(); ++region)
    if (joined(region)) out.push_back(tell_reset(region));
  return out;
}

SavedHome OuterHome::save() const {
  SavedHome saved{.global = global_, .round = id_.round, .folded_count = folded_count_, .peers = {}};
  for (const Peer& peer : peers_)
    saved.peers.push_back(
        {peer.folded, peer.final_folded, peer.weight, peer.deltas, peer.codec_state.records});
  return saved;
}

void OuterHome::restore(const SavedHome& saved, std::uint64_t epoch) {
  ISTHMUS_CHECK(!initialized() && saved.peers.size() == peers_.size());
  global_ = saved.global;
  id_ = {epoch, saved.round};
  folded_count_ = saved.folded_count;
  for (std::uint32_t region = 0; region < peers_.size(); ++region) {
    const SavedHome::Peer& from = saved.peers[region];
    Peer& peer = peers_[region];
    peer.received = peer.folded = from.folded;
    peer.final_folded = from.final_folded;
    peer.weight = from.weight;
    peer.deltas = from.deltas;
    peer.codec_state = {.key = core::mix_key(key_, region, 0), .records = from.records};
    if (joined(region)) (void)tell_reset(region);  // Sent when the link comes up.
  }
}

bool OuterHome::final_acknowledged(std::uint32_t region) const {
  return finished_ && joined(region) && !peers_[region].unacknowledged;
}

}  // namespace isthmus::server
