#include "server/outer_region.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "server/outer_record.h"

namespace isthmus::server {

OuterRegion::OuterRegion(std::size_t elements, std::uint64_t incarnation, const compression::Codec& codec,
                         std::uint64_t key)
    : elements_(elements), incarnation_(incarnation), codec_(codec), codec_state_{.key = key} {}

Result<Contribution> OuterRegion::start(std::span<const float> parameters, std::uint64_t samples,
                                        bool final) {
  ISTHMUS_CHECK(idle() && parameters.size() == elements_);
  const compression::Codec& codec = final ? lossless_codec() : codec_;
  auto record = encode_record(codec, codec_state_, parameters, {anchor_.get(), elements_}, {});
  if (!record.ok()) return std::move(record).status().with_context("parameters - anchor");

  Contribution contribution;
  contribution.id = {incarnation_, seq_ + 1};
  contribution.base = anchor_id_;
  contribution.samples = samples;
  contribution.final = final;
  contribution.codec = static_cast<std::uint8_t>(codec.id());
  contribution.record = *std::move(record);

  ++seq_;
  final_started_ = final;
  in_flight_ = contribution;
  return contribution;
}

Result<OuterRegion::Outcome> OuterRegion::apply(const GlobalDelta& delta, core::VersionedFloats& parameters) {
  if (!has_anchor()) return Outcome::kNeedReset;
  if (delta.id <= anchor_id_) return Outcome::kIgnored;
  if (delta.base != anchor_id_) return Outcome::kNeedReset;

  Result<core::VersionedFloats::Reference> moved =
      moved_by(delta.codec, delta.record, {anchor_.get(), elements_});
  if (!moved.ok()) return std::move(moved).status();
  if (delta.checksum && *delta.checksum != anchor_checksum({moved->get(), elements_}))
    return Outcome::kNeedReset;
  move_anchor(*std::move(moved), delta.id, delta.folded, parameters);
  return Outcome::kApplied;
}

Result<OuterRegion::Outcome> OuterRegion::apply(const Reset& reset, core::VersionedFloats& parameters) {
  if (has_anchor() && reset.id <= anchor_id_) return Outcome::kIgnored;
  // Meant for an earlier life of this process; the one for this life is still to come.
  if (reset.folded.incarnation < incarnation_) return Outcome::kNeedReset;
  Result<core::VersionedFloats::Reference> values = read_values(reset.values, elements_);
  if (!values.ok()) return std::move(values).status();

  const bool new_epoch = has_anchor() && reset.id.epoch != anchor_id_.epoch;
  const bool knows_more_than_told = reset.folded > ContributionId{incarnation_, seq_};
  if (!has_anchor() || reset.final || knows_more_than_told)
    assign(*std::move(values), reset, parameters);
  else
    move_anchor(*std::move(values), reset.id, reset.folded, parameters);
  if (new_epoch && reset.folded.seq < seq_) {
    in_flight_.reset();
    final_started_ = false;
    seq_ = reset.folded.seq;
  }
  return Outcome::kApplied;
}

void OuterRegion::resume(core::VersionedFloats::Reference anchor, const AnchorId& id) {
  ISTHMUS_CHECK(!has_anchor());
  anchor_ = std::move(anchor);
  anchor_id_ = id;
}

bool OuterRegion::has_folded_ours(const ContributionId& folded) const noexcept {
  return in_flight_ && folded.incarnation == incarnation_ && folded.seq >= in_flight_->id.seq;
}

// A GlobalDelta and a Reset do the same: parameters keep their distance to the anchor, less what has
// arrived in it meanwhile.
void OuterRegion::move_anchor(core::VersionedFloats::Reference to, const AnchorId& id,
                              const ContributionId& folded, core::VersionedFloats& parameters) {
  const std::span<float> p = parameters.write();
  const float* from = anchor_.get();
  const float* target = to.get();
  if (has_folded_ours(folded)) {
    // What the home has decoded, not what we meant to say: the rest is still to be told.
    for (std::size_t i = 0; i < elements_; ++i) p[i] -= from[i];
    take_back(in_flight_->codec, in_flight_->record, p);
    for (std::size_t i = 0; i < elements_; ++i) p[i] = target[i] + p[i];
    in_flight_.reset();
  } else {
    for (std::size_t i = 0; i < elements_; ++i) p[i] = target[i] + (p[i] - from[i]);
  }
  anchor_ = std::move(to);
  anchor_id_ = id;
}

void OuterRegion::assign(core::VersionedFloats::Reference to, const Reset& reset,
                         core::VersionedFloats& parameters) {
  std::copy_n(to.get(), elements_, parameters.write().begin());
  in_flight_.reset();
  if (reset.folded.incarnation == incarnation_) seq_ = std::max(seq_, reset.folded.seq);
  anchor_ = std::move(to);
  anchor_id_ = reset.id;
}

double OuterRegion::untold_squared(std::span<const float> parameters) const {
  std::vector<float> untold(parameters.begin(), parameters.end());
  for (std::size_t i = 0; i < elements_; ++i) untold[i] -= anchor_[i];
  if (in_flight_) take_back(in_flight_->codec, in_flight_->record, untold);
  double sum = 0;
  for (const float value : untold) sum += static_cast<double>(value) * value;
  return sum;
}

}  // namespace isthmus::server
