// A region's side of the `outer` protocol for one slice: what it has told the slice's home and what not.
//
// Error feedback needs no residual here: what the codec lost, and what could not be sent, is still in
// parameters - anchor and goes with the next contribution. The rules are docs/protocol.md.
//
// Threads: belongs to the slice's shard. Decides and computes; sends nothing.
// Memory:  one anchor and one contribution in flight (decoded and encoded), whatever the link does.
//          The anchor of a Reset shares the message's memory.
// Errors:  a peer's bytes give kProtocol or kCorruption and change nothing; a Reset is the way on.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compression/codec.h"
#include "core/versioned_floats.h"
#include "isthmus/status.h"
#include "server/outer_messages.h"

namespace isthmus::server {

class OuterRegion {
 public:
  enum class Outcome {
    kApplied,    // The anchor moved; acknowledge.
    kIgnored,    // Old news; acknowledge all the same, so that the home learns where we are.
    kNeedReset,  // Base unknown or checksum wrong; nothing changed: ask for a Reset.
  };

  // `codec` encodes all contributions but final ones, which are fp32. It must outlive this.
  // `key`: of the random numbers that the codec draws; no other encoder's.
  OuterRegion(std::size_t elements, std::uint64_t incarnation, const compression::Codec& codec,
              std::uint64_t key = 0);

  // False until the first Reset has brought an anchor.
  bool has_anchor() const noexcept { return anchor_ != nullptr; }
  // True when a contribution may start: there is an anchor, none is in flight, and the final one has not
  // been started.
  bool idle() const noexcept { return has_anchor() && !in_flight_ && !final_started_; }

  // Encodes parameters - anchor as the next contribution, which stays in flight until a GlobalDelta or
  // Reset has folded it. kInvalidArgument, and nothing changes, when the difference is not finite.
  // REQUIRES: idle().
  Result<Contribution> start(std::span<const float> parameters, std::uint64_t samples, bool final);

  // After a restart at the slice's own home: the anchor is the home's, so what the parameters differ from it
  // is still to be told. REQUIRES: no anchor.
  void resume(core::VersionedFloats::Reference anchor, const AnchorId& id);

  // The contribution in flight, the same bytes: to be sent again when a link came back.
  std::optional<Contribution> in_flight() const { return in_flight_; }

  // anchor += G; parameters += G; and parameters -= contribution in flight, if G has folded it.
  Result<Outcome> apply(const GlobalDelta& delta, core::VersionedFloats& parameters);

  // anchor = values; parameters = values + what the home has not been told. The first one, a final one,
  // and one that knows more of us than we have told (an older life of us told it) assign both.
  // Not newer than what we have: kIgnored. One of a new epoch comes from a home that has gone back to a
  // checkpoint: what it has not folded is no longer in flight but untold, and the next contribution is the
  // one after the last that it knows.
  Result<Outcome> apply(const Reset& reset, core::VersionedFloats& parameters);

  // The last contribution is on its way, or folded.
  bool final_started() const noexcept { return final_started_; }

  // REQUIRES: has_anchor().
  GlobalDeltaAck ack() const noexcept { return {anchor_id_, incarnation_}; }
  AnchorId anchor_id() const noexcept { return anchor_id_; }
  // A snapshot. REQUIRES: has_anchor().
  core::VersionedFloats::Reference anchor() const { return anchor_; }

  // ||parameters - anchor - in flight||^2, the part that nobody has been told. REQUIRES: has_anchor().
  double untold_squared(std::span<const float> parameters) const;

 private:
  bool has_folded_ours(const ContributionId& folded) const noexcept;
  void move_anchor(core::VersionedFloats::Reference to, const AnchorId& id, const ContributionId& folded,
                   core::VersionedFloats& parameters);
  void assign(core::VersionedFloats::Reference to, const Reset& reset, core::VersionedFloats& parameters);

  std::size_t elements_;
  std::uint64_t incarnation_;
  const compression::Codec& codec_;
  compression::CodecState codec_state_;

  core::VersionedFloats::Reference anchor_;  // Never written: a new anchor is a new array.
  AnchorId anchor_id_;
  std::uint64_t seq_ = 0;  // Of the newest contribution.
  bool final_started_ = false;
  std::optional<Contribution> in_flight_;
};

}  // namespace isthmus::server
