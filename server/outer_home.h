// The home's side of the `outer` protocol for one slice: it folds the regions' contributions into `global`
// and tells each region the difference to what that region is known to hold (its view).
//
// Threads: belongs to the slice's shard. Decides and computes; sends nothing and owns no clock.
// Memory:  global; for each other region a view, at most one contribution waiting and one GlobalDelta
//          unacknowledged.
// Errors:  a peer's bytes give kProtocol or kCorruption and change nothing.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "compression/codec.h"
#include "core/job_config.h"
#include "core/versioned_floats.h"
#include "isthmus/status.h"
#include "server/outer_messages.h"

namespace isthmus::server {

class OuterHome {
 public:
  // What is to be sent to `region`.
  struct Outgoing {
    std::uint32_t region = 0;
    std::variant<GlobalDelta, Reset> message;
  };
  enum class Received {
    kAccepted,   // Waits for its round.
    kDuplicate,  // Already waiting or folded; the answer is in repeat() if there is one.
    kRefused,    // Not the next one of a known incarnation: dropped; the region needs a Reset.
  };

  // `self`: the region that is home; its messages are Resets that share memory instead of being encoded.
  OuterHome(std::size_t elements, std::uint32_t regions, std::uint32_t self, std::uint64_t epoch,
            const compression::Codec& codec, core::RegionWeight weight);

  // The job's initial values: round 0. REQUIRES: not initialized().
  void initialize(std::span<const float> values);
  bool initialized() const noexcept;

  // A region's process said who it is (link up). A new incarnation starts at seq 1. Returns the Reset that
  // brings it in, or what was unacknowledged (the same bytes), if any. Nothing before initialize().
  std::optional<Outgoing> join(std::uint32_t region, std::uint64_t incarnation);

  Result<Received> receive(std::uint32_t region, const Contribution& contribution);

  // True when a round may close: something waits and either every region of `expected` (a mask, one flag a
  // region: alive and not finished) has contributed, or the deadline passed.
  bool may_close(std::span<const bool> expected, bool deadline_passed) const;
  // Contributions waiting: none means no deadline runs.
  std::size_t waiting() const noexcept;

  // Folds what waits: global += weighted mean. Divides by the weights that arrived when they are at least
  // half of the living regions' (`living`, one flag a region), else by the weights of the living; a region
  // that did not contribute counts with its last known weight. Returns what to send.
  std::vector<Outgoing> close(std::span<const bool> living);

  // The region's anchor is now there. Returns the next thing to tell it, when global has moved on.
  std::optional<Outgoing> acknowledge(std::uint32_t region, const GlobalDeltaAck& ack);

  // A dense Reset for a region that asked for one; counts as unacknowledged until acknowledged.
  std::optional<Outgoing> reset(std::uint32_t region);

  // What is unacknowledged by `region`, the same bytes.
  std::optional<Outgoing> repeat(std::uint32_t region) const;

  // True when every region of `expected` (one flag a region) has had its final contribution folded.
  bool all_final(std::span<const bool> expected) const;
  // Final Resets for all regions. After this nothing is folded any more.
  std::vector<Outgoing> finish();
  bool finished() const noexcept;
  // True when `region` has acknowledged its final Reset.
  bool final_acknowledged(std::uint32_t region) const;

  AnchorId id() const noexcept;  // Of global.
  std::uint64_t folded_count() const noexcept;
  std::uint64_t duplicate_count() const noexcept;
};

}  // namespace isthmus::server
