// `isthmus bench push-pull`: what a worker and a server cost beside plain ZeroMQ doing the same.

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench.h"
#include "apps/bench_commit.h"
#include "apps/bench_exchange.h"
#include "apps/bench_timer.h"
#include "apps/command_line.h"
#include "apps/report.h"
#include "apps/table.h"
#include "core/suggest.h"

namespace isthmus::apps {
namespace {

constexpr std::string_view kRows[] = {"push",  "pull",    "push_pull", "batched",
                                      "small", "latency", "large",     "commit"};

struct PushPullArguments {
  std::uint64_t repeats = 15;
  std::vector<std::string> rows;  // None: all.
  bool json = false;
  bool quiet = false;
};

// Something of ours beside something to hold it against.
struct PushPullRow {
  std::string name;
  std::string beside;
  double seconds = 0;  // Medians.
  double beside_seconds = 0;
  double ratio = 0;  // The median of pairs, as `goal` wants it.
  double goal = 0;
  bool at_most = false;  // The goal is a most, not a least.
  std::string key;       // Of kRows.

  bool reached() const { return at_most ? ratio <= goal : ratio >= goal; }
};

using Run = std::function<Result<double>()>;  // Seconds.

// Both in turn, `repeats` times after one for practice. `speeds`: the ratio is of speeds, not of times.
Status compare(PushPullRow& row, const Run& ours, const Run& beside, std::uint64_t repeats, bool speeds) {
  std::vector<double> our_times, beside_times, ratios;
  for (std::uint64_t i = 0; i <= repeats; ++i) {
    const auto theirs = beside();
    if (!theirs.ok()) return theirs.status();
    const auto mine = ours();
    if (!mine.ok()) return mine.status();
    if (i == 0) continue;
    our_times.push_back(*mine);
    beside_times.push_back(*theirs);
    ratios.push_back(speeds ? *theirs / *mine : *mine / *theirs);
  }
  row.seconds = median(our_times);
  row.beside_seconds = median(beside_times);
  row.ratio = median(ratios);
  return {};
}

class PushPullBench {
 public:
  explicit PushPullBench(const PushPullArguments& arguments) : arguments_(arguments) {}

  Result<std::vector<PushPullRow>> run() {
    constexpr std::size_t kMi = 256 * 1024;  // Elements of 1 MiB.
    ISTHMUS_RETURN_IF_ERROR(beside_plain("push", "push", 0.95, {.pull = false}));
    ISTHMUS_RETURN_IF_ERROR(beside_plain("pull", "pull", 0.90, {.push = false}));
    ISTHMUS_RETURN_IF_ERROR(beside_plain("push-pull", "push_pull", 0.90, {}));
    ISTHMUS_RETURN_IF_ERROR(beside_plain("push-pull, 1024 x 64 KiB at once", "batched", 1.5,
                                         {.tensors = 1024, .elements = 16 * 1024, .together = 1024}));
    ISTHMUS_RETURN_IF_ERROR(beside_each_other("push-pull, 1000 x 4 KiB at once", "1 x 4 MB", "small", 2.0,
                                              {.tensors = 1000, .elements = 1024, .together = 1000},
                                              {.tensors = 1, .elements = 1'024'000}));
    ISTHMUS_RETURN_IF_ERROR(latency());
    ISTHMUS_RETURN_IF_ERROR(beside_each_other("push-pull, 1 x 64 MiB", "64 x 1 MiB", "large", 1.05,
                                              {.tensors = 1, .elements = 64 * kMi}, {}));
    ISTHMUS_RETURN_IF_ERROR(commit());
    return std::move(rows_);
  }

 private:
  void say(const std::string& what) const {
    if (!arguments_.quiet) std::fprintf(stderr, "bench: %s\n", what.c_str());
  }

  bool wanted(const std::string& key) const {
    return arguments_.rows.empty() || std::ranges::find(arguments_.rows, key) != arguments_.rows.end();
  }

  Status beside_plain(const std::string& name, const std::string& key, double goal,
                      const ExchangeShape& shape) {
    if (!wanted(key)) return {};
    say(name);
    auto ours = IsthmusExchange::start(shape);
    if (!ours.ok()) return std::move(ours).status();
    auto plain = PlainExchange::start(shape);
    if (!plain.ok()) return std::move(plain).status();
    PushPullRow& row =
        rows_.emplace_back(PushPullRow{.name = name, .beside = "plain ZeroMQ", .goal = goal, .key = key});
    return compare(
        row, [&] { return (*ours)->run(); }, [&] { return (*plain)->run(); }, arguments_.repeats, true);
  }

  Status beside_each_other(const std::string& name, const std::string& beside, const std::string& key,
                           double goal, const ExchangeShape& shape, const ExchangeShape& beside_shape) {
    if (!wanted(key)) return {};
    say(name);
    auto ours = IsthmusExchange::start(shape);
    if (!ours.ok()) return std::move(ours).status();
    auto other = IsthmusExchange::start(beside_shape);
    if (!other.ok()) return std::move(other).status();
    PushPullRow& row = rows_.emplace_back(
        PushPullRow{.name = name, .beside = beside, .goal = goal, .at_most = true, .key = key});
    return compare(
        row, [&] { return (*ours)->run(); }, [&] { return (*other)->run(); }, arguments_.repeats, false);
  }

  Status latency() {
    if (!wanted("latency")) return {};
    constexpr std::uint64_t kRoundTrips = 1000;
    const ExchangeShape shape{.tensors = 1, .elements = 1024, .in_flight = 1};
    say("push-pull of 4 KiB");
    auto ours = IsthmusExchange::start(shape);
    if (!ours.ok()) return std::move(ours).status();
    auto plain = PlainExchange::start(shape);
    if (!plain.ok()) return std::move(plain).status();
    PushPullRow& row = rows_.emplace_back(PushPullRow{.name = "push-pull, 1 x 4 KiB",
                                                      .beside = "plain ZeroMQ",
                                                      .goal = 1.8,
                                                      .at_most = true,
                                                      .key = "latency"});
    return compare(
        row, [&] { return (*ours)->run(); }, [&] { return (*plain)->run(); }, kRoundTrips, false);
  }

  Status commit() {
    if (!wanted("commit")) return {};
    say("mean + adam");
    CommitBench bench;
    PushPullRow& row = rows_.emplace_back(
        PushPullRow{.name = "mean + adam", .beside = "the same memory", .goal = 0.6, .key = "commit"});
    return compare(
        row, [&]() -> Result<double> { return bench.commit(); },
        [&]() -> Result<double> { return bench.touch(); }, arguments_.repeats, true);
  }

  const PushPullArguments& arguments_;
  std::vector<PushPullRow> rows_;
};

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string text_of(const std::vector<PushPullRow>& rows) {
  Table table({"what", "beside", ">ms", ">beside, ms", ">ratio", ">goal", ""});
  for (const PushPullRow& row : rows) {
    table.add({row.name, row.beside, number("%.3f", row.seconds * 1e3),
               number("%.3f", row.beside_seconds * 1e3), number("%.2f", row.ratio),
               (row.at_most ? "<= " : ">= ") + number("%.2f", row.goal), row.reached() ? "" : "missed"});
  }
  return "one worker, one server, TCP on this machine; 64 tensors of 1 MiB, 16 in flight, unless said "
         "otherwise\n\n" +
         table.to_string();
}

std::string json_of(const std::vector<PushPullRow>& rows) {
  nlohmann::ordered_json json = {{"schema", 1}};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PushPullRow& row : rows) {
    json[row.key + "_ratio"] = row.ratio;
    list.push_back({{"name", row.name},
                    {"beside", row.beside},
                    {"seconds", row.seconds},
                    {"beside_seconds", row.beside_seconds},
                    {"ratio", row.ratio},
                    {"goal", row.goal},
                    {"goal_is", row.at_most ? "at most" : "at least"},
                    {"reached", row.reached()}});
  }
  json["rows"] = std::move(list);
  return json.dump() + "\n";
}

Status run(const PushPullArguments& arguments) {
  if (arguments.repeats == 0) return {ErrorCode::kInvalidArgument, "--repeats: at least 1"};
  for (const std::string& row : arguments.rows) {
    if (std::ranges::find(kRows, row) == std::end(kRows))
      return {ErrorCode::kInvalidArgument, "--row: there is no '" + row + "'" + core::suggestion(row, kRows)};
  }
  const auto rows = PushPullBench(arguments).run();
  if (!rows.ok()) return rows.status();
  std::fputs((arguments.json ? json_of(*rows) : text_of(*rows)).c_str(), stdout);
  return {};
}

}  // namespace

int run_bench_push_pull(Arguments words) {
  PushPullArguments arguments;
  CommandLine line("bench push-pull",
                   "Measures a worker and a server on this machine beside plain ZeroMQ doing the same.");
  line.number("--repeats", arguments.repeats, "times that each pair is measured; the median counts (15)");
  line.texts("--row", arguments.rows, "ROW",
             "only this one, may be given many times: push, pull, push_pull, batched, small, latency, large, "
             "commit");
  line.flag("--json", arguments.json, "one JSON object on stdout");
  line.flag("-q,--quiet", arguments.quiet, "say nothing while it runs");
  line.examples(
      "isthmus bench push-pull\nisthmus bench push-pull --row push --row pull\nisthmus bench push-pull "
      "--repeats 31 --json");
  if (const auto code = line.parse(words)) return *code;
  return report(run(arguments));
}

}  // namespace isthmus::apps
