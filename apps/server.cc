// `isthmus server`: one server process of one region.

#include <charconv>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/command_line.h"
#include "apps/http_endpoint.h"
#include "apps/report.h"
#include "apps/watch_shards.h"
#include "core/config_file.h"
#include "core/log.h"
#include "core/signals.h"
#include "server/server.h"
#include "trainer/model_table.h"

namespace isthmus::apps {
namespace {

struct ServerArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string region;
  std::uint64_t server = 0;
  std::vector<std::string> via;
  std::uint64_t from_step = ~Step{0};
  bool hold = false;
};

// "virginia/0=127.0.0.1:7300"
Result<std::pair<wan::Peer, core::Address>> parse_via(const core::JobConfig& config,
                                                      const std::string& text) {
  const Status bad(ErrorCode::kInvalidArgument, "--via " + text + ": give region/server=host:port");
  const std::size_t slash = text.find('/');
  const std::size_t equals = text.find('=');
  if (slash == std::string::npos || equals == std::string::npos || slash > equals) return bad;
  const auto address = core::parse_address(text.substr(equals + 1));
  if (!address.ok()) return address.status();
  for (std::uint32_t region = 0; region < config.regions.size(); ++region) {
    if (config.regions[region].name != text.substr(0, slash)) continue;
    std::uint32_t server = 0;
    const char* end = text.data() + equals;
    const auto parsed = std::from_chars(text.data() + slash + 1, end, server);
    if (parsed.ec != std::errc() || parsed.ptr != end || server >= config.regions[region].servers.size())
      return bad;
    return std::pair(wan::Peer{region, server}, *address);
  }
  return bad;
}

Status serve(const ServerArguments& arguments) {
  auto config = core::load_config(arguments.config, arguments.overrides);
  if (!config.ok()) return std::move(config).status();
  server::ServerOptions options;
  const core::RegionConfig* region = config->find_region(arguments.region);
  if (region == nullptr)
    return {ErrorCode::kInvalidArgument,
            "job '" + config->job + "' has no region '" + arguments.region + "'"};
  if (arguments.server >= region->servers.size())
    return {ErrorCode::kInvalidArgument,
            "region " + region->name + " has " + std::to_string(region->servers.size()) +
                " servers; there is no server " + std::to_string(arguments.server)};
  options.region = static_cast<std::uint32_t>(region - config->regions.data());
  options.server = static_cast<std::uint32_t>(arguments.server);
  options.hold = arguments.hold;
  options.restore_at_most = arguments.from_step;
  for (const std::string& text : arguments.via) {
    auto via = parse_via(*config, text);
    if (!via.ok()) return std::move(via).status();
    options.via.push_back(*std::move(via));
  }
  if (config->trainer.model != "custom") {
    auto table = models::model_table(config->trainer);
    if (!table.ok()) return std::move(table).status();
    auto layout = core::Layout::create(*std::move(table), config->slice_elements);
    if (!layout.ok()) return std::move(layout).status();
    options.layout = *std::move(layout);
  }
  const core::ServerConfig own = region->servers[arguments.server];
  options.log = core::stderr_log(region->name + "/server " + std::to_string(arguments.server));
  options.config = *std::move(config);

  auto signals = core::StopSignals::create();  // Before the first thread.
  if (!signals.ok()) return std::move(signals).status();
  auto server = server::Server::start(std::move(options));
  if (!server.ok()) return std::move(server).status();
  std::unique_ptr<HttpEndpoint> http;
  if (own.http) {
    auto started = HttpEndpoint::start(*own.http, watch_shards(own_shards(own)));
    if (!started.ok()) return std::move(started).status();
    http = *std::move(started);
  }
  const core::SignalThread on_signal(**signals, [&] { (*server)->cancel(); });
  return (*server)->run();
}

}  // namespace

int run_server(Arguments arguments) {
  ServerArguments server;
  CommandLine line("server", "Runs one server of one region, until the job has ended.");
  line.positional("CONFIG", server.config, "the job's config file", CommandLine::Need::kRequired);
  line.text("--region", server.region, "NAME", "the region that this server belongs to");
  line.number("--server", server.server, "which of the region's servers this is, from 0");
  line.texts("--set", server.overrides, "KEY=VALUE",
             "override a key of the config, as trainer.stop.steps=100");
  line.texts("--via", server.via, "REGION/SERVER=HOST:PORT",
             "dial that server there instead (an emulated link)");
  line.number("--from-step", server.from_step,
              "go on from the newest checkpoint of at most this step, and remove those of later ones");
  line.flag("--hold", server.hold, "stay after the last sync until an observer tells it to exit");
  line.examples("  isthmus server job.yaml --region frankfurt");
  if (const auto code = line.parse(arguments)) return *code;
  if (server.region.empty()) return report({ErrorCode::kInvalidArgument, "server: --region is missing"});
  return report(serve(server));
}

}  // namespace isthmus::apps
