#include "apps/status.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "apps/command.h"
#include "apps/command_line.h"
#include "apps/report.h"
#include "core/clock.h"
#include "core/config_file.h"
#include "core/signals.h"
#include "worker/admin.h"

namespace isthmus::apps {
namespace {

constexpr auto kTimeout = std::chrono::seconds(2);  // For all shards together.
constexpr auto kRefresh = std::chrono::seconds(1);
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

struct StatusArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string region;
  bool json = false;
  bool watch = false;
};

struct Place {
  std::string region;
  std::string name;  // "frankfurt/0"
  core::Address address;
};

std::vector<Place> shards_of(const core::JobConfig& config, const std::string& only) {
  std::vector<Place> places;
  for (const core::RegionConfig& region : config.regions) {
    if (!only.empty() && region.name != only) continue;
    std::uint32_t index = 0;
    for (const core::ServerConfig& server : region.servers) {
      for (std::uint32_t i = 0; i < server.shards; ++i) {
        core::Address address = server.lan;
        address.port = static_cast<std::uint16_t>(address.port + i);
        places.push_back({region.name, region.name + "/" + std::to_string(index++), std::move(address)});
      }
    }
  }
  return places;
}

void print(const StatusView& view, const StatusArguments& arguments) {
  if (arguments.watch && !arguments.json)
    std::fputs(::isatty(STDOUT_FILENO) == 1 ? kClearScreen : "\n", stdout);
  std::fputs(arguments.json ? (status_json(view) + "\n").c_str() : status_text(view).c_str(), stdout);
  std::fflush(stdout);  // A reader of the pipe wants it now.
}

int watch(const core::JobConfig& config, const StatusArguments& arguments) {
  auto signals = core::StopSignals::create();  // Before the first thread.
  if (!signals.ok()) return report(signals.status());
  const core::SystemClock clock;
  StatusView last;
  core::TimePoint looked;
  do {
    StatusView view = look_at_job(config, arguments.region, kTimeout, arguments.json);
    const core::TimePoint now = clock.now();
    // A silent shard counts nothing, so what changed since then is no rate.
    if (last.status.answered > 0 && last.status.answered == view.status.answered)
      view.rates = rates_between(last.status, view.status, now - looked);
    print(view, arguments);
    if (std::ferror(stdout) != 0) return kExitOk;  // Nobody reads any more.
    last = std::move(view);
    looked = now;
  } while (!(*signals)->wait_for(kRefresh));
  return kExitOk;
}

int run(const StatusArguments& arguments) {
  const auto config = core::load_config(arguments.config, arguments.overrides);
  if (!config.ok()) return report(config.status());
  if (!arguments.region.empty() && config->find_region(arguments.region) == nullptr) {
    return report(
        {ErrorCode::kInvalidArgument, "job '" + config->job + "' has no region '" + arguments.region + "'"});
  }
  if (arguments.watch) return watch(*config, arguments);
  const StatusView view = look_at_job(*config, arguments.region, kTimeout, arguments.json);
  print(view, arguments);
  return view.status.answered == 0 ? kExitConnection : kExitOk;
}

}  // namespace

StatusView look_at_job(const core::JobConfig& config, const std::string& region, core::Duration timeout,
                       bool norms) {
  const std::vector<Place> places = shards_of(config, region);
  std::vector<core::Address> addresses;
  addresses.reserve(places.size());
  for (const Place& place : places) addresses.push_back(place.address);
  StatusView view;
  view.job = config.job;
  view.region = region;
  std::vector<proto::StatusReply> replies;
  proto::StatusRequest question;
  question.set_norms(norms);
  auto answers = worker::status(addresses, timeout, question);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) {
      view.silent.emplace_back(places[i].name, answers[i].status().message());
    } else if (answers[i]->job() != config.job || answers[i]->region() != places[i].region) {
      view.silent.emplace_back(places[i].name, addresses[i].to_string() + " is region '" +
                                                   answers[i]->region() + "' of job '" + answers[i]->job() +
                                                   "'");
    } else {
      replies.push_back(*std::move(answers[i]));
    }
  }
  view.status = job_status(config, replies);
  return view;
}

int run_status(Arguments words) {
  StatusArguments arguments;
  CommandLine line("status", "Asks every server of a running job what it is doing.");
  line.positional("CONFIG", arguments.config, "the job's config file", CommandLine::Need::kRequired);
  line.texts("--set", arguments.overrides, "KEY=VALUE", "instead of what the file says; may be repeated");
  line.text("--region", arguments.region, "NAME", "ask this region's servers only");
  line.flag("--watch", arguments.watch, "again each second, until Ctrl-C");
  line.flag("--json", arguments.json, "one JSON object on stdout; with --watch one a line");
  line.examples(
      "isthmus status job.yaml --watch\n"
      "isthmus status job.yaml --region frankfurt --json");
  if (const auto code = line.parse(words)) return *code;
  return run(arguments);
}

}  // namespace isthmus::apps
