// `isthmus emulate`: the WAN emulator as a relay, for any TCP program.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/command_line.h"
#include "apps/emulate_flags.h"
#include "apps/report.h"
#include "core/signals.h"
#include "core/units.h"
#include "wan/relay.h"

namespace isthmus::apps {
namespace {

using std::chrono::steady_clock;

constexpr auto kReportEvery = std::chrono::seconds(1);
constexpr std::uint64_t kNoFd = std::numeric_limits<std::uint64_t>::max();

struct EmulateOptions {
  std::string listen, to;
  std::vector<wan::RelayMapping> mappings;
  core::EmulateConfig link;
  std::uint64_t seed = 1;
  std::uint64_t ready_fd = kNoFd;
  bool die_with_parent = false;
  bool quiet = false;
};

void declare(CommandLine& line, EmulateOptions& options) {
  line.text("--listen", options.listen, "HOST:PORT",
            "where to listen; port 0 takes a free one and prints it");
  line.text("--to", options.to, "HOST:PORT", "where what comes there goes");
  line.custom("--map", "LISTEN=TO", "another pair; all share the one link",
              [&options](const std::string& text) -> Status {
                auto mapping = parse_mapping(text);
                if (mapping.ok()) options.mappings.push_back(*mapping);
                return std::move(mapping).status();
              });
  line.rate("--rate", options.link.rate_bytes_per_sec, "each way, as 10Mbps; no limit if not given");
  line.duration("--rtt", options.link.rtt, "round trip, as 80ms");
  line.duration("--jitter", options.link.jitter, "added each way, between 0 and this");
  line.bytes("--queue", options.link.queue_bytes, "may wait for the rate each way; then senders wait (1MiB)");
  line.custom("--outage", "at=TIME,for=TIME",
              "nothing passes; 'after=SIZE' instead of 'at'; ',cut' also closes "
              "connections",
              [&options](const std::string& text) -> Status {
                auto outage = parse_outage(text);
                if (outage.ok()) options.link.outages.push_back(*outage);
                return std::move(outage).status();
              });
  line.text("--trace", options.link.trace, "FILE", "lines of 'SECONDS RATE': the rate over time");
  line.number("--seed", options.seed, "of the jitter (1)");
  line.number("--ready-fd", options.ready_fd,
              "once it listens, write the ports here, one a line, and close it");
  line.flag("--die-with-parent", options.die_with_parent, "end when the process that started this one ends");
  line.flag("-q,--quiet", options.quiet, "print errors only");
  line.examples(
      "isthmus emulate --listen 127.0.0.1:7300 --to 127.0.0.1:7200 --rate 10Mbps --rtt 80ms\n"
      "isthmus emulate --map 127.0.0.1:0=127.0.0.1:7200 --rate 1Mbps --outage at=5s,for=5s,cut");
}

// --listen and --to are the first mapping.
Status complete(EmulateOptions& options) {
  if (options.listen.empty() != options.to.empty())
    return {ErrorCode::kInvalidArgument, "emulate: --listen and --to belong together"};
  if (!options.listen.empty()) {
    auto listen = parse_listen_address(options.listen);
    if (!listen.ok()) return std::move(listen).status().with_context("--listen");
    auto to = core::parse_address(options.to);
    if (!to.ok()) return std::move(to).status().with_context("--to");
    options.mappings.insert(options.mappings.begin(), {*listen, *to});
  }
  if (options.mappings.empty())
    return {ErrorCode::kInvalidArgument,
            "emulate: give --listen and --to, or --map; see isthmus emulate --help"};
  if (options.ready_fd != kNoFd && options.ready_fd > std::numeric_limits<int>::max())
    return {ErrorCode::kInvalidArgument, "--ready-fd: no such file descriptor"};
  return {};
}

// The kernel then kills this process when the thread that started it ends.
Status die_with_parent() {
  const pid_t parent = ::getppid();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return {ErrorCode::kInternal, "--die-with-parent: not possible here"};
  if (::getppid() != parent)
    return {ErrorCode::kCancelled, "--die-with-parent: the parent has ended already"};
  return {};
}

Status announce(const EmulateOptions& options, const std::vector<std::uint16_t>& ports) {
  std::string all;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string port = std::to_string(ports[i]) + "\n";
    all += port;
    if (options.mappings[i].listen.port == 0 && options.ready_fd != STDOUT_FILENO)
      std::fputs(port.c_str(), stdout);
    if (options.quiet) continue;
    core::Address listen = options.mappings[i].listen;
    listen.port = ports[i];
    std::fprintf(stderr, "emulate: %s -> %s\n", listen.to_string().c_str(),
                 options.mappings[i].target.to_string().c_str());
  }
  std::fflush(stdout);
  if (!options.quiet) std::fprintf(stderr, "emulate: %s\n", describe(options.link).c_str());
  if (options.ready_fd == kNoFd) return {};
  const int fd = static_cast<int>(options.ready_fd);
  if (::write(fd, all.data(), all.size()) != static_cast<ssize_t>(all.size()))
    return {ErrorCode::kInvalidArgument, "--ready-fd " + std::to_string(fd) + " cannot be written"};
  ::close(fd);
  return {};
}

// One line on a terminal that is written over each second.
void print_progress(const wan::RelayStats& now, const wan::RelayStats& before, double seconds) {
  const auto rate = [&](const wan::RelayWayStats& a, const wan::RelayWayStats& b) {
    return core::format_rate(static_cast<double>(a.delivered_bytes - b.delivered_bytes) / seconds);
  };
  std::fprintf(stderr, "\r\033[Kthere %s  back %s  waiting %s / %s  connections %llu",
               rate(now.there, before.there).c_str(), rate(now.back, before.back).c_str(),
               core::format_bytes(now.there.queued_bytes).c_str(),
               core::format_bytes(now.back.queued_bytes).c_str(), static_cast<unsigned long long>(now.open));
  std::fflush(stderr);
}

void print_totals(const wan::RelayStats& stats, core::Duration time) {
  std::fprintf(stderr, "emulate: %s there, %s back, %llu connections (%llu cut, %llu without a target), %s\n",
               core::format_bytes(stats.there.delivered_bytes).c_str(),
               core::format_bytes(stats.back.delivered_bytes).c_str(),
               static_cast<unsigned long long>(stats.accepted), static_cast<unsigned long long>(stats.cut),
               static_cast<unsigned long long>(stats.failed), core::format_duration(time).c_str());
}

// Until somebody asks for the end.
void watch(const wan::Relay& relay, core::StopSignals& signals, bool progress) {
  auto before_time = steady_clock::now();
  wan::RelayStats before;
  while (!signals.wait_for(kReportEvery)) {
    if (!progress) continue;
    const auto time = steady_clock::now();
    const wan::RelayStats now = relay.stats();
    print_progress(now, before, std::chrono::duration<double>(time - before_time).count());
    before = now;
    before_time = time;
  }
  if (progress) std::fputs("\r\033[K", stderr);
}

Status emulate(const EmulateOptions& options) {
  if (options.die_with_parent) ISTHMUS_RETURN_IF_ERROR(die_with_parent());
  auto signals = core::StopSignals::create();
  if (!signals.ok()) return std::move(signals).status();
  const auto log = [](const std::string& text) { std::fprintf(stderr, "emulate: %s\n", text.c_str()); };
  wan::RelayOptions relay_options{
      .mappings = options.mappings, .link = options.link, .seed = options.seed, .log = {}};
  if (!options.quiet) relay_options.log = log;
  const auto begin = steady_clock::now();
  auto relay = wan::Relay::start(std::move(relay_options));
  if (!relay.ok()) return std::move(relay).status();

  ISTHMUS_RETURN_IF_ERROR(announce(options, (*relay)->ports()));
  watch(**relay, **signals, !options.quiet && ::isatty(STDERR_FILENO) == 1);
  (*relay)->stop();
  if (!options.quiet) print_totals((*relay)->stats(), steady_clock::now() - begin);
  return {};
}

}  // namespace

int run_emulate(Arguments arguments) {
  EmulateOptions options;
  CommandLine line("emulate",
                   "A TCP relay that behaves like a slow link: whatever connects through it shares one rate, "
                   "delay and queue each way.");
  declare(line, options);
  if (const auto code = line.parse(arguments)) return *code;
  if (Status status = complete(options); !status.ok()) return report(status);
  return report(emulate(options));
}

}  // namespace isthmus::apps
