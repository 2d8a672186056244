// All processes of a job on this machine: started, watched, told to end, and never left behind.
//
// Threads: the main thread, which must be the one that starts them (process.h); an emulated link has a
//          thread of its own.
// Memory:  small; the links' (wan/relay.h).
// Errors:  a process that cannot be started, or an address that cannot be bound.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/evaluator_process.h"
#include "apps/process.h"
#include "apps/run_folder.h"
#include "core/job_config.h"
#include "wan/relay.h"

namespace isthmus::apps {

class LocalJob {
 public:
  struct Member {
    Process process;
    ProcessOptions again;  // How it is started another time.
    std::uint32_t region = 0;
    bool server = false;
    std::optional<Ending> ending;  // Set by reap().
  };

  // Starts the emulated links, then every server, worker, and the evaluator. `say` hears of an
  // evaluator that is started again. With `from_step`, servers go on from their checkpoints of at most it.
  static Result<std::unique_ptr<LocalJob>> start(const core::JobConfig& config, const RunFolder& folder,
                                                 std::optional<Step> from_step,
                                                 std::function<void(const std::string&)> say);
  ~LocalJob();  // Kills whoever is left.

  std::vector<Member>& members() noexcept { return members_; }
  EvaluatorProcess& evaluator() noexcept { return *evaluator_; }
  // Those that ended since the last call.
  std::vector<Member*> reap();
  bool servers_ended() const noexcept;
  bool workers_ended() const noexcept;
  // REQUIRES: it has ended.
  Status start_again(Member& member);

  // SIGTERM, then SIGKILL for those that are still there after `grace`.
  void terminate(std::chrono::nanoseconds grace);

 private:
  Status start_links(const core::JobConfig& config);
  Status start_servers(const core::JobConfig& config, const RunFolder& folder, std::optional<Step> from_step);
  Status start_workers(const core::JobConfig& config, const RunFolder& folder);

  struct Via {
    std::uint32_t dialler = 0;  // The region that is to dial ...
    std::string argument;       // ... as --via says.
  };
  std::vector<std::unique_ptr<wan::Relay>> links_;
  std::vector<Via> via_;
  std::vector<Member> members_;
  std::optional<EvaluatorProcess> evaluator_;
};

// Where each shard of the job answers, in order.
std::vector<core::Address> shard_addresses(const core::JobConfig& config);

}  // namespace isthmus::apps
