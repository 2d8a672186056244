// A shard's part in keeping regions close: when each slice speaks, to whom, and what becomes of the answers.
// The `outer` protocol's two sides (outer_region.h, outer_home.h) decide for one slice; this drives them for
// all of a shard's. `lockstep` is the same with a sync at every step and workers that wait for it.
//
// Threads: belongs to its shard; reads the RegionTable.
// Memory:  what the two sides hold, a slice at a time; nothing queues here.
// Errors:  a peer's bad message is a Status (the shard counts and reports it) and changes nothing.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/job_config.h"
#include "core/layout.h"
#include "server/directory.h"
#include "server/local_slice.h"
#include "server/outer_home.h"
#include "server/outer_region.h"
#include "server/region_table.h"

namespace isthmus::server {

struct SyncCounters {
  std::uint64_t folded = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t resets = 0;
  std::uint64_t checksum_mismatches = 0;
  std::uint64_t overflows = 0;  // Rounds whose sum was not finite; the global values stayed as they were.
  std::uint64_t newest_round = 0;
  std::vector<std::uint64_t> staleness;  // Histogram of steps ahead of the slowest region, at each sync.
};

class RegionSync {
 public:
  // Queues a message for a server of another region; a link that is down drops it, since everything
  // unacknowledged is repeated when the link comes up.
  using Send = std::function<void(wan::Peer to, proto::Message message)>;

  // The references outlive this. `slices`: the shard's, in the order of their ids.
  RegionSync(const core::JobConfig& config, std::uint32_t region, std::uint64_t incarnation,
             const core::Layout& layout, const Directory& directory,
             std::vector<std::unique_ptr<LocalSlice>>& slices, const RegionTable& table, Send send);
  ~RegionSync();

  // The slice's parameters are the region's initial values: at its home they become the job's.
  void initialize(std::size_t index, core::TimePoint now);
  bool is_home(std::size_t index) const;

  // Adds to what the slices have saved: the homes' sides, and the samples that were not told.
  void save(std::size_t index, SavedSlice& saved) const;
  // After a restart, once the slices are restored: what is home here goes on in a new epoch, the rest waits
  // for its home's Reset. Before anything else.
  void restore(std::size_t index, const SavedSlice& saved);
  // Every slice has an anchor: the region may train.
  bool ready() const noexcept { return slices_without_anchor_ == 0; }

  // Looks for links that came up since the last call and repeats what they may have lost.
  void poll_links(core::TimePoint now);

  // A message of the protocol. `sender_clock` is set when the message carries one. kFailed when the home of a
  // slice whose anchor we hold has restarted without it: nothing can bring the two together.
  Status receive(wan::Peer from, const proto::Message& message, core::TimePoint now,
                 std::optional<Step>& sender_clock);

  // Starts the contributions that are due, closes the rounds that may close.
  void advance(Step clock, core::TimePoint now);
  // When advance() has something to do without anything having happened.
  std::optional<core::TimePoint> next_deadline() const;

  // lockstep: whether the last commit has come back from all regions. Other strategies never wait.
  bool settled(std::size_t index) const;
  // The region is too far ahead of the slowest one, by the hard bound with `halt`.
  bool halted(Step clock) const;

  // Training has ended here: the last, lossless sync. It is done once every slice holds the final values
  // and whoever we are home to has them too, or is lost.
  void drain(core::TimePoint now);
  bool draining() const noexcept { return draining_; }
  // A home said that all regions have ended. One that restarted, or was out of reach, may not have known.
  bool all_ended() const noexcept { return all_ended_; }
  // Nothing until it is done; then the regions that it was done without, which should be none.
  std::optional<std::vector<std::uint32_t>> drained(core::TimePoint now) const;

  AnchorId anchor_id(std::size_t index) const;
  core::VersionedFloats::Reference anchor(std::size_t index) const;
  SyncCounters counters() const;
  double untold_squared() const;

 private:
  struct State;  // Of one slice.

  State* find(core::SliceId slice);
  void start(State& state, bool final);
  Status receive_as_home(State& state, wan::Peer from, const proto::Message& message,
                         std::optional<Step>& clock);
  Status receive_as_region(State& state, wan::Peer from, const proto::Message& message,
                           std::optional<Step>& clock);
  void dispatch(State& state, OuterHome::Outgoing outgoing);
  void dispatch(State& state, std::optional<OuterHome::Outgoing> outgoing);
  // The slice's home said something; `answer` it, and note what it did.
  void applied(State& state, OuterRegion::Outcome outcome, bool final);
  void note_anchor(State& state);
  Status say_lost(State& state, std::uint32_t region);
  void contribute(State& state, const Contribution& contribution);
  void close_round(State& state);
  bool due(const State& state) const;
  bool takes_part(const State& state, std::uint32_t region) const;
  // False while the job's initial values have not come: a job that ends before has nothing to bring together.
  bool began(const State& state) const;
  bool done(const State& state, core::TimePoint now) const;
  // REQUIRES: done().
  bool was_without(const State& state, std::uint32_t region) const;
  void send(State& state, std::uint32_t region, proto::Message message);

  const core::JobConfig& config_;
  const std::uint32_t region_;
  const std::uint64_t incarnation_;
  const Directory& directory_;
  const RegionTable& table_;
  const Send send_;
  const std::unique_ptr<const compression::Codec> dense_;
  const std::unique_ptr<const compression::Codec> wan_codec_;
  std::vector<std::unique_ptr<State>> states_;
  std::vector<std::uint64_t> seen_generation_;  // Of each entry of the table, ...
  std::vector<std::uint64_t> seen_incarnation_;
  core::TimePoint now_{};  // Of the call being served.
  Step clock_ = 0;
  std::size_t slices_without_anchor_ = 0;
  bool draining_ = false;
  bool all_ended_ = false;
  SyncCounters counters_;
};

}  // namespace isthmus::server
