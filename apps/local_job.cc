#include "apps/local_job.h"

#include <poll.h>

#include <algorithm>
#include <csignal>

#include "apps/programs.h"
#include "core/clock.h"

namespace isthmus::apps {
namespace {

// Servers and links answer first: workers would take all the cores there are.
constexpr int kWorkerNice = 5;

}  // namespace

std::vector<core::Address> shard_addresses(const core::JobConfig& config) {
  std::vector<core::Address> addresses;
  for (const core::RegionConfig& region : config.regions) {
    for (const core::ServerConfig& server : region.servers) {
      for (std::uint32_t shard = 0; shard < server.shards; ++shard) {
        addresses.push_back(server.lan);
        addresses.back().port = static_cast<std::uint16_t>(server.lan.port + shard);
      }
    }
  }
  return addresses;
}

Result<std::unique_ptr<LocalJob>> LocalJob::start(const core::JobConfig& config, const RunFolder& folder,
                                                  std::optional<Step> from_step,
                                                  std::function<void(const std::string&)> say) {
  auto job = std::make_unique<LocalJob>();
  if (config.links.emulate && config.regions.size() > 1) ISTHMUS_RETURN_IF_ERROR(job->start_links(config));
  ISTHMUS_RETURN_IF_ERROR(job->start_servers(config, folder, from_step));
  ISTHMUS_RETURN_IF_ERROR(job->start_workers(config, folder));
  auto evaluator =
      EvaluatorProcess::start({.name = "evaluator",
                               .command = {this_program(), "evaluate", folder.config().string(), "--serve"},
                               .log = folder.log("evaluator"),
                               .nice = kWorkerNice},
                              std::move(say));
  if (!evaluator.ok()) return std::move(evaluator).status();
  job->evaluator_.emplace(*std::move(evaluator));
  return job;
}

LocalJob::~LocalJob() { terminate(std::chrono::nanoseconds(0)); }

// One link for each pair of regions; all connections between their servers share it.
Status LocalJob::start_links(const core::JobConfig& config) {
  for (std::uint32_t later = 1; later < config.regions.size(); ++later) {
    for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
      wan::RelayOptions options;
      options.link = *config.links.emulate;
      options.seed = config.seed;
      for (const core::ServerConfig& server : config.regions[earlier].servers) {
        wan::RelayMapping& mapping = options.mappings.emplace_back();
        mapping.listen = {"127.0.0.1", 0};
        mapping.target = server.wan;
      }
      auto link = wan::Relay::start(std::move(options));
      if (!link.ok()) return std::move(link).status().with_context("emulated link");
      for (std::size_t i = 0; i < (*link)->ports().size(); ++i) {
        via_.push_back({later, config.regions[earlier].name + "/" + std::to_string(i) +
                                   "=127.0.0.1:" + std::to_string((*link)->ports()[i])});
      }
      links_.push_back(*std::move(link));
    }
  }
  return {};
}

Status LocalJob::start_servers(const core::JobConfig& config, const RunFolder& folder,
                               std::optional<Step> from_step) {
  for (std::uint32_t region = 0; region < config.regions.size(); ++region) {
    const std::string& name = config.regions[region].name;
    for (std::size_t i = 0; i < config.regions[region].servers.size(); ++i) {
      std::vector<std::string> command = {this_program(), "server",   folder.config().string(), "--region",
                                          name,           "--server", std::to_string(i),        "--hold"};
      for (const Via& via : via_) {
        if (via.dialler == region) command.insert(command.end(), {"--via", via.argument});
      }
      const std::string process_name = name + "/server " + std::to_string(i);
      const ProcessOptions again{process_name, command, folder.log(process_name), 0, false};
      if (from_step) command.insert(command.end(), {"--from-step", std::to_string(*from_step)});
      auto process = Process::start({process_name, std::move(command), again.log, 0, false});
      if (!process.ok()) return std::move(process).status();
      members_.push_back({*std::move(process), again, region, true, std::nullopt});
    }
  }
  return {};
}

Status LocalJob::start_workers(const core::JobConfig& config, const RunFolder& folder) {
  for (std::uint32_t region = 0; region < config.regions.size(); ++region) {
    const std::string& name = config.regions[region].name;
    for (std::uint32_t i = 0; i < config.regions[region].workers; ++i) {
      const std::string process_name = name + "/worker " + std::to_string(i);
      const ProcessOptions options{process_name,
                                   {this_program(), "worker", folder.config().string(), "--region", name,
                                    "--worker", std::to_string(i)},
                                   folder.log(process_name),
                                   kWorkerNice,
                                   false};
      auto process = Process::start(options);
      if (!process.ok()) return std::move(process).status();
      members_.push_back({*std::move(process), options, region, false, std::nullopt});
    }
  }
  return {};
}

std::vector<LocalJob::Member*> LocalJob::reap() {
  std::vector<Member*> ended;
  for (Member& member : members_) {
    if (member.ending) continue;
    member.ending = member.process.ended();
    if (member.ending) ended.push_back(&member);
  }
  return ended;
}

bool LocalJob::servers_ended() const noexcept {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.server || member.ending; });
}

bool LocalJob::workers_ended() const noexcept {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.server || member.ending; });
}

Status LocalJob::start_again(Member& member) {
  auto process = Process::start(member.again);
  if (!process.ok()) return std::move(process).status();
  member.process = *std::move(process);
  member.ending.reset();
  return {};
}

void LocalJob::terminate(std::chrono::nanoseconds grace) {
  const core::SystemClock clock;
  const core::TimePoint until = clock.now() + grace;
  std::vector<Process*> running;
  for (Member& member : members_) running.push_back(&member.process);
  if (evaluator_) running.push_back(&evaluator_->process());
  for (Process* process : running) process->signal(SIGTERM);
  while (true) {
    std::erase_if(running, [](Process* process) { return process->ended().has_value(); });
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock.now()).count();
    if (running.empty() || left <= 0) break;
    std::vector<pollfd> entries;
    for (Process* process : running) entries.push_back({process->exit_fd(), POLLIN, 0});
    (void)::poll(entries.data(), entries.size(), static_cast<int>(left));
  }
  for (Process* process : running) process->signal(SIGKILL);
}

}  // namespace isthmus::apps
