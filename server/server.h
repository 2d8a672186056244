// One server process of a region: its shards, its links to the other regions, and their lifetimes.
//
// Threads: start() makes a thread for each shard and the wan thread; run() serves the process's own events
//          on the caller's. request_stop() and cancel() may be called from any thread.
// Memory:  the shards' (shard.h) and the links' (wan/endpoint.h).
// Errors:  start() names what could not be bound, read or agreed on; run() returns why the job could not
//          end well: kRefused (another region declined us), kCancelled, kInternal.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/job_config.h"
#include "core/layout.h"
#include "core/mailbox.h"
#include "server/checkpoint_writer.h"
#include "server/region_table.h"
#include "server/shard.h"
#include "wan/endpoint.h"

namespace isthmus::server {

struct ServerOptions {
  core::JobConfig config;
  std::uint32_t region = 0;
  std::uint32_t server = 0;
  // The job's tensors when they are known beforehand; else the first worker declares them.
  std::optional<core::Layout> layout;
  // Dial there instead of a peer's configured address (an emulated link).
  std::vector<std::pair<wan::Peer, core::Address>> via;
  // Stay after the last sync until an observer says CONTROL_EXIT; else at most `linger`.
  bool hold = false;
  core::Duration linger = std::chrono::seconds(10);
  // Of the checkpoints in config.checkpoint's folder, go on from the newest of at most this step; so that the
  // servers of a job that are all started again go on from the same one.
  Step restore_at_most = ~Step{0};
  std::function<void(const std::string&)> log;  // One line; any thread.
};

class Server final : private ShardHost, private wan::Handler {
 public:
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
  ~Server() override;  // Stops everything at once.

  // Serves until the job has ended, in success or in an error.
  Status run();

  void request_stop();  // Workers stop at their next step, then the last sync.
  // run() returns kCancelled now; with checkpoints, once what is at hand is written.
  void cancel();

 private:
  struct Proposed {
    core::Layout layout;
  };
  struct ShardDrained {
    std::vector<std::uint32_t> without;  // Regions.
  };
  struct Captured {
    std::uint32_t local_shard = 0;
    std::optional<SavedShard> saved;
  };
  struct Written {
    CheckpointWriter::Outcome outcome;
  };
  struct ExitRequested {};
  struct Cancelled {};
  struct Failed {
    Status why;
  };
  using Event = std::variant<Proposed, ShardDrained, Captured, Written, ExitRequested, Cancelled, Failed>;

  explicit Server(ServerOptions options);
  Status open_checkpoints();
  Status start_shards();
  Status agree(core::Layout layout);
  // Serves until there is a reason to end.
  Status serve();
  void ask_shards(const ShardEvent& question);
  void on_captured(Captured captured);
  void on_written(const CheckpointWriter::Outcome& outcome);
  // What is at hand is on the disk, or it took too long.
  void finish_checkpoints();
  // Waits for events, at most until then, and handles them; false as soon as `handle` has said so. Those of
  // checkpoints are handled here.
  template <typename Handle>
  bool take_events(std::optional<core::TimePoint> until, const Handle& handle);
  // How a job ends whose last sync did not reach those regions.
  Status ended(const std::set<std::uint32_t>& without) const;
  void shut_down();
  void post(Event event);
  void wake_shards();

  // ShardHost, on the shards' threads.
  void propose(core::Layout layout) override { post(Proposed{std::move(layout)}); }
  void send(wan::Peer to, proto::Message message) override;
  void clock_changed() override;
  void drained(std::vector<std::uint32_t> without) override { post(ShardDrained{std::move(without)}); }
  void captured(std::uint32_t local_shard, std::optional<SavedShard> saved) override {
    post(Captured{local_shard, std::move(saved)});
  }
  void failed(Status why) override { post(Failed{std::move(why)}); }
  void exit_requested() override { post(ExitRequested{}); }
  std::vector<wan::LinkState> links() const override;
  void log(const std::string& line) override;

  // wan::Handler, on the wan thread.
  bool on_message(wan::Peer from, proto::Message& message) override;
  void on_link_up(wan::Peer peer, std::uint64_t incarnation) override;
  void on_link_down(wan::Peer peer, const Status& why) override;
  void on_clock(wan::Peer peer, Step clock) override;
  void on_refused(wan::Peer peer, const Status& why) override;
  std::string describe(wan::Peer peer) const;

  const ServerOptions options_;
  const core::SystemClock clock_;
  std::uint64_t incarnation_;
  RegionTable table_;
  core::Mailbox<Event> events_;
  transport::Context context_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::shared_ptr<const Agreement> agreement_;       // Written before the endpoint starts.
  std::optional<SavedServer> saved_;                 // What to go on from, until the shards have it.
  std::vector<std::optional<SavedShard>> captured_;  // By local shard: of the checkpoint that comes to be.
  std::optional<core::TimePoint> next_checkpoint_;   // Where they go by time.
  bool last_capture_wanted_ = false;                 // Told to end: one more checkpoint first.
  std::unique_ptr<CheckpointWriter> writer_;
  std::unique_ptr<wan::Endpoint> endpoint_;
  std::atomic<wan::Endpoint*> shared_endpoint_{nullptr};
  std::vector<std::jthread> threads_;
};

}  // namespace isthmus::server
