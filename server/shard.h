// One thread that owns a set of slices: it answers workers and observers on its own ZeroMQ socket, folds
// what they contribute, and keeps its slices close to the other regions'.
//
// Threads: run() is the shard's thread and owns everything here; the mailbox and stop() may be used from
//          any thread. LAN requests go first, WAN messages one a turn.
// Memory:  its slices (local_slice.h, region_sync.h) and at most kMaxParkedOfOne parked requests a peer.
// Errors:  what a peer got wrong is answered with a Refuse, counted, and logged once a second at most;
//          only a socket that cannot be bound ends a shard.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/job_config.h"
#include "core/layout.h"
#include "core/mailbox.h"
#include "proto/meta.h"
#include "server/commit_policy.h"
#include "server/directory.h"
#include "server/local_slice.h"
#include "server/membership.h"
#include "server/optimizer.h"
#include "server/region_sync.h"
#include "server/region_table.h"
#include "server/saved_state.h"
#include "transport/socket.h"

namespace isthmus::server {

// The tensors and where their slices live, as the whole server agreed.
struct Agreement {
  core::Layout layout;
  Directory directory;
};

struct WanMessage {
  wan::Peer from;
  proto::Message message;
};
// A shard begins: anew, or where it was.
struct Begin {
  std::shared_ptr<const Agreement> agreement;
  std::optional<SavedShard> saved;
};
// As soon as every worker has finished `step` steps, what the shard remembers is wanted.
struct CaptureAt {
  Step step = 0;
};
// What the shard remembers is wanted now, and it is to end: nobody may be answered what is not saved.
struct CaptureAndEnd {};
// Something of the process around is not as it should be: for `status` and the log.
struct Complaint {
  std::string what;
};
using ShardEvent = std::variant<Begin, WanMessage, CaptureAt, CaptureAndEnd, Complaint>;

// Requests of one peer whose answers may wait at once; more are refused.
inline constexpr std::size_t kMaxParkedOfOne = 1024;

struct ShardOptions {
  const core::JobConfig* config = nullptr;
  std::uint32_t region = 0;
  std::uint32_t server = 0;
  std::uint32_t local_shard = 0;  // Index within the server.
  std::uint64_t incarnation = 0;
};

// What a shard needs of the process around it. Called on the shard's thread.
class ShardHost {
 public:
  virtual ~ShardHost() = default;
  // A worker declared this layout, and none is agreed on yet: an Agreement will come to every mailbox.
  virtual void propose(core::Layout layout) = 0;
  virtual void send(wan::Peer to, proto::Message message) = 0;
  virtual void clock_changed() = 0;  // The RegionTable has the shard's new clock.
  // For a checkpoint: at the steps of the config, when asked to, before the last sync and after it. Nothing:
  // asked for its last one, the shard has none to give.
  virtual void captured(std::uint32_t local_shard, std::optional<SavedShard> saved) = 0;
  // The last sync is done here, without those regions; called once.
  virtual void drained(std::vector<std::uint32_t> without) = 0;
  virtual void failed(Status why) = 0;  // The job cannot go on.
  virtual void exit_requested() = 0;    // An observer's CONTROL_EXIT.
  virtual std::vector<wan::LinkState> links() const = 0;
  virtual void log(const std::string& line) = 0;
};

class Shard {
 public:
  // Binds the shard's LAN address.
  static Result<std::unique_ptr<Shard>> create(const ShardOptions& options, transport::Context& context,
                                               const core::Clock& clock, RegionTable& table, ShardHost& host);

  core::Mailbox<ShardEvent>& mailbox() noexcept { return mailbox_; }
  std::uint16_t port() const noexcept { return socket_->port(); }  // Of the LAN address.
  void run();                                                      // Returns after stop().
  void stop() noexcept;                                            // Any thread.
  void request_stop_training() noexcept;  // Any thread: as an observer's CONTROL_STOP.

 private:
  // A request whose answer waits for something.
  struct Parked {
    transport::PeerName peer;
    proto::Kind kind;  // Of the request.
    std::uint64_t request_id = 0;
    std::uint32_t worker = 0;
    Step step = 0;                          // kPushPull: pushed; kNextStep: asked for.
    std::vector<proto::PullRequest> pulls;  // kPushPull
    std::vector<std::size_t> sees;          // kPushPull: slices that must have committed `step` first.
    std::uint64_t round = 0;                // kSnapshot of an anchor
    std::vector<core::VersionedFloats::Reference> captured;
  };

  Shard(const ShardOptions& options, std::unique_ptr<transport::Socket> socket, const core::Clock& clock,
        RegionTable& table, ShardHost& host);

  // shard.cc: the loop
  void handle_event(ShardEvent event);
  void tick();
  void update_clock();
  std::chrono::nanoseconds time_to_wait() const;
  void begin(Begin begin);
  void restore(const SavedShard& saved);
  void capture_if_due();
  bool capture();  // False: there is nothing to save.
  // The next step that the config wants a checkpoint of.
  Step next_capture(Step after) const;
  SavedShard save() const;
  void begin_drain();
  void check_drained();
  void fail(Status why);
  // For `status` and the log: once a second at most, so that a broken peer cannot fill a disk.
  void complain(std::string what);

  // shard_requests.cc: what workers and observers ask
  void handle_request(transport::Incoming incoming);
  void on_hello(const transport::PeerName& peer, const proto::Message& message);
  void admit(const transport::PeerName& peer, std::uint64_t request_id, const proto::Hello& hello);
  void on_initialize(const transport::PeerName& peer, const proto::Message& message);
  void on_push_pull(const transport::PeerName& peer, const proto::Message& message);
  void on_next_step(const transport::PeerName& peer, const proto::Message& message);
  void on_leave(const transport::PeerName& peer, const proto::Message& message);
  void on_control(const transport::PeerName& peer, const proto::Message& message);

  // shard_replies.cc: what is answered, and when
  void park(Parked parked);
  void answer_parked();
  bool try_answer(Parked& parked);
  bool answer_push_pull(const Parked& parked);
  bool answer_snapshot(Parked& parked);
  void capture_anchors();
  void on_snapshot(const transport::PeerName& peer, const proto::Message& message);
  void add_norms(proto::ShardStatus& status) const;
  void on_status(const transport::PeerName& peer, const proto::Message& message);
  void send(const transport::PeerName& peer, proto::Message message);
  void refuse(const transport::PeerName& peer, std::uint64_t request_id, proto::RefuseReason reason,
              std::string text);
  void send_values(const Parked& parked, const std::vector<core::VersionedFloats::Reference>& values);

  // shard_commits.cc: contributions into slices
  struct PushRecord {
    std::size_t index;  // Into slices_.
    WorkerContribution contribution;
    std::uint64_t computed_from;  // Version; 0: not said.
  };
  // All of a message's records checked, or the refusal.
  Result<std::vector<PushRecord>> check_push(const proto::PushPull& push, const proto::Message& message);
  // What a codec said of a record; kInvalidArgument for what is one, but not finite.
  static Status explain(Status status, const compression::Codec& codec, std::size_t bytes,
                        std::size_t elements);
  void grant_more(Member& member);
  void contribute(Member& member, Step step, std::vector<PushRecord> records);
  void commit_ready_steps();
  void commit_step(LocalSlice& slice, Step step);
  void committed(const LocalSlice& slice, Step step);

  bool ready() const;  // Parameters are there: workers may pull.
  bool settled(std::size_t index) const;
  std::optional<std::size_t> index_of(core::SliceId slice) const;
  proto::Phase phase() const;
  std::string name() const;

  const ShardOptions options_;
  const core::JobConfig& config_;
  const core::RegionConfig& region_config_;
  const std::uint32_t shard_;  // Index in the region.
  const std::unique_ptr<transport::Socket> socket_;
  const core::Clock& clock_;
  RegionTable& table_;
  ShardHost& host_;
  core::Mailbox<ShardEvent> mailbox_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> stop_training_{false};

  const std::unique_ptr<const CommitPolicy> policy_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const std::unique_ptr<const compression::Codec> lan_codec_;
  Membership membership_;
  std::shared_ptr<const Agreement> agreement_;
  std::vector<std::unique_ptr<LocalSlice>> slices_;  // In the order of their ids.
  std::unique_ptr<RegionSync> sync_;                 // With one region: none.
  std::vector<std::pair<transport::PeerName, proto::Message>> waiting_hellos_;
  std::list<Parked> parked_;
  std::vector<core::VersionedFloats::Reference> own_before_final_;
  std::vector<float> scratch_;
  std::optional<core::TimePoint> training_since_;
  std::optional<Step> capture_at_;
  bool initialized_ = false;
  bool draining_ = false;
  bool drained_ = false;
  std::vector<std::uint32_t> last_sync_without_;  // Regions, once drained_.
  std::optional<Status> failure_;                 // From then on everybody is refused with it.
  bool more_events_ = false;

  std::vector<std::uint64_t> staleness_;  // Of contributions; with several regions RegionSync counts.
  std::uint64_t samples_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t refused_not_finite_ = 0;
  std::uint64_t refused_malformed_ = 0;
  std::string last_error_;
  std::optional<core::TimePoint> last_complaint_;
};

}  // namespace isthmus::server
