#include "server/outer_region.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "server/outer_record.h"

namespace isthmus::server {

OuterRegion::OuterRegion(std::size_t elements, std::uint64_t incarnation, const compression::Codec& codec)
    : elements_(elements), incarnation_(incarnation), codec_(codec) {}

Result<Contribution> OuterRegion::start(std::span<const float> parameters, std::uint64_t samples,
                                        bool final) {
  ISTHMUS_CHECK(idle() && parameters.size() == elements_);
  std::vector<float> values(elements_);
  for (std::size_t i = 0; i < elements_; ++i) values[i] = parameters[i] - anchor_[i];
  if (!compression::all_finite(values))
    return Status(ErrorCode::kInvalidArgument, "parameters - anchor is not finite");

  Contribution contribution;
  contribution.id = {incarnation_, seq_ + 1};
  contribution.base = anchor_id_;
  contribution.samples = samples;
  contribution.final = final;
  const compression::Codec& codec = final ? lossless_codec() : codec_;
  contribution.codec = static_cast<std::uint8_t>(codec.id());
  contribution.record = encode_record(codec, codec_state_, values);
  // What will be subtracted once it is folded is what the home will decode, not what we meant to say.
  ISTHMUS_RETURN_IF_ERROR(decode_record(contribution.codec, contribution.record, values));

  ++seq_;
  final_started_ = final;
  in_flight_values_ = std::move(values);
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

  const bool knows_more_than_told = reset.folded > ContributionId{incarnation_, seq_};
  if (!has_anchor() || reset.final || knows_more_than_told)
    assign(*std::move(values), reset, parameters);
  else
    move_anchor(*std::move(values), reset.id, reset.folded, parameters);
  return Outcome::kApplied;
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
    const float* told = in_flight_values_.data();
    for (std::size_t i = 0; i < elements_; ++i) p[i] = target[i] + ((p[i] - from[i]) - told[i]);
    in_flight_.reset();
    in_flight_values_ = {};
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
  in_flight_values_ = {};
  if (reset.folded.incarnation == incarnation_) seq_ = std::max(seq_, reset.folded.seq);
  anchor_ = std::move(to);
  anchor_id_ = reset.id;
}

double OuterRegion::untold_squared(std::span<const float> parameters) const {
  double sum = 0;
  for (std::size_t i = 0; i < elements_; ++i) {
    const float told = in_flight_ ? in_flight_values_[i] : 0.0f;
    const double untold = static_cast<double>(parameters[i] - anchor_[i] - told);
    sum += untold * untold;
  }
  return sum;
}

}  // namespace isthmus::server
