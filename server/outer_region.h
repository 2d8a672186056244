// A region's side of the `outer` protocol for one slice: what it has told the slice's home and what not.
//
// Error feedback needs no residual here: what the codec lost, and what could not be sent, is still in
// parameters - anchor and goes with the next contribution.
//
// Threads: belongs to the slice's shard. Decides and computes; sends nothing.
// Memory:  one anchor and one contribution in flight (decoded and encoded), whatever the link does.
// Errors:  a peer's bytes give kProtocol or kCorruption and change nothing.

#pragma once

#include <cstdint>
#include <memory>
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
    kNeedReset,  // Base unknown or checksum wrong: ask for a Reset.
  };

  // `codec` encodes all contributions but final ones, which are fp32. It must outlive this.
  OuterRegion(std::size_t elements, std::uint64_t incarnation, const compression::Codec& codec);

  // False until the first Reset has brought an anchor.
  bool has_anchor() const noexcept;
  // True when a contribution may start: there is an anchor, and none is in flight.
  bool idle() const noexcept;

  // Encodes parameters - anchor as the next contribution, which stays in flight until a GlobalDelta or
  // Reset has folded it. kInvalidArgument, and nothing changes, when the difference is not finite.
  // REQUIRES: idle().
  Result<Contribution> start(std::span<const float> parameters, std::uint64_t samples, bool final);

  // The contribution in flight, the same bytes: to be sent again when a link came back.
  std::optional<Contribution> in_flight() const;

  // anchor += G; parameters += G; and parameters -= contribution in flight, if G has folded it.
  Result<Outcome> apply(const GlobalDelta& delta, core::VersionedFloats& parameters);

  // anchor = values; parameters = values + what the home has not been told. A final one assigns both.
  // Older than what we have: kIgnored.
  Result<Outcome> apply(const Reset& reset, core::VersionedFloats& parameters);

  GlobalDeltaAck ack() const noexcept;
  AnchorId anchor_id() const noexcept;
  // A snapshot. REQUIRES: has_anchor().
  core::VersionedFloats::Reference anchor() const;

  // ||parameters - anchor - in flight||^2, the part that nobody has been told.
  double untold_squared(std::span<const float> parameters) const;
};

// Of the bits of an anchor; the same on every machine, different for any two that differ in one element.
std::uint64_t anchor_checksum(std::span<const float> anchor);

}  // namespace isthmus::server
