// The home's side of the `outer` protocol for one slice: it folds the regions' contributions into `global`
// and tells each region the difference to what that region is known to hold (its view).
// The rules are docs/protocol.md.
//
// Threads: belongs to the slice's shard. Decides and computes; sends nothing and owns no clock.
// Memory:  global; for each other region a view, the contributions of a round (one a region, one more for
//          each time that it restarted meanwhile) and one message unacknowledged. Regions that hold the
//          same share one view and one encoding; the own region's anchor is global itself.
// Errors:  a peer's bytes give kProtocol or kCorruption and change nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "compression/codec.h"
#include "core/job_config.h"
#include "core/versioned_floats.h"
#include "isthmus/status.h"
#include "server/outer_messages.h"
#include "server/saved_state.h"

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
    kDuplicate,  // Already waiting or folded, of an earlier life, or too late: the answer is in repeat() if
                 // there is one.
    kRefused,    // Not the next one of a known incarnation and epoch: dropped; the region needs a Reset.
  };

  // `self`: the region that is home; its messages are Resets that share memory instead of being encoded.
  // `codec` encodes what the others are told. It must outlive this. `key`: of the random numbers that it
  // draws; no other encoder's.
  OuterHome(std::size_t elements, std::uint32_t regions, std::uint32_t self, std::uint64_t epoch,
            const compression::Codec& codec, core::RegionWeight weight, std::uint64_t key = 0);

  // The job's initial values: round 0. Returns the Resets of the regions that have joined already.
  // REQUIRES: not initialized().
  std::vector<Outgoing> initialize(std::span<const float> values);
  bool initialized() const noexcept { return global_ != nullptr; }

  // A region's process said who it is (link up). A new incarnation starts at seq 1. Returns the Reset that
  // brings it in, or what was unacknowledged (the same bytes), if any. Nothing before initialize(), and
  // nothing for an incarnation older than the one known.
  std::optional<Outgoing> join(std::uint32_t region, std::uint64_t incarnation);

  Result<Received> receive(std::uint32_t region, const Contribution& contribution);

  // True when a round may close: something waits and either every region of `expected` (a mask, one flag a
  // region: alive and not finished) has contributed, or the deadline passed.
  bool may_close(std::span<const bool> expected, bool deadline_passed) const;
  // Contributions waiting: none means no deadline runs.
  std::size_t waiting() const noexcept { return waiting_.size(); }

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
  // Folds what still waits. Returns final Resets for all regions that have joined; one that joins later
  // gets its own. After this nothing is folded any more.
  std::vector<Outgoing> finish();
  bool finished() const noexcept { return finished_; }
  // True when `region` has acknowledged its final Reset.
  bool final_acknowledged(std::uint32_t region) const;

  // What a restart must not lose. REQUIRES: initialized().
  SavedHome save() const;
  // Goes on from there in an epoch that is later than any before it: what was told since `saved` was made is
  // undone by the Resets that everybody gets who had joined; nothing that was received since is counted.
  // REQUIRES: not initialized(), nobody has joined, as many peers as regions.
  void restore(const SavedHome& saved, std::uint64_t epoch);

  AnchorId id() const noexcept { return id_; }  // Of global.
  // A snapshot of global. REQUIRES: initialized().
  core::VersionedFloats::Reference global() const { return global_; }
  std::uint64_t folded_count() const noexcept { return folded_count_; }
  std::uint64_t duplicate_count() const noexcept { return duplicate_count_; }
  // Rounds that were not applied because their sum overflowed: training has diverged.
  std::uint64_t overflow_count() const noexcept { return overflow_count_; }

 private:
  using Reference = core::VersionedFloats::Reference;
  struct Peer {
    ContributionId received;  // The newest accepted; its incarnation is the process's. 0: has not joined.
    ContributionId folded;
    bool final_folded = false;
    double weight = 0;         // Of its last contribution with samples; 0: not known yet.
    Reference view;            // Its anchor, once it has acknowledged.
    AnchorId view_id;          // Of the view.
    std::uint64_t told = 0;    // changes_ when the view was made.
    std::uint64_t deltas = 0;  // GlobalDeltas made for it.
    compression::CodecState codec_state;
    std::optional<std::variant<GlobalDelta, Reset>> unacknowledged;
  };
  struct Waiting {
    std::uint32_t region = 0;
    Contribution contribution;
  };
  // What moves one view to global; shared by the regions that hold that view.
  struct Difference {
    Reference from, to;
    std::uint8_t codec = 0;
    core::SharedBytes record;
    compression::CodecState codec_state;
  };

  bool joined(std::uint32_t region) const noexcept;
  std::span<const float> values_of(const Reference& reference) const noexcept;
  bool has_waiting(std::uint32_t region) const;
  std::vector<double> waiting_weights() const;
  double divisor(std::span<const double> weights, std::span<const bool> living) const;
  void fold(std::span<const bool> living);
  Outgoing tell(std::uint32_t region, std::vector<Difference>& made);
  Outgoing tell_reset(std::uint32_t region);
  std::optional<Difference> difference_to(const Peer& peer) const;

  std::size_t elements_;
  std::uint32_t self_;
  const compression::Codec& codec_;
  core::RegionWeight weight_;
  std::uint64_t key_;

  Reference global_;  // Never written: each round makes a new array.
  AnchorId id_;
  std::uint64_t changes_ = 0;  // Of global's values.
  std::vector<Peer> peers_;
  std::vector<Waiting> waiting_;
  bool finished_ = false;
  std::uint64_t folded_count_ = 0;
  std::uint64_t duplicate_count_ = 0;
  std::uint64_t overflow_count_ = 0;
};

}  // namespace isthmus::server
