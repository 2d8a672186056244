// `isthmus bench codec`: how fast and how exact every codec is, on this machine.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/bench.h"
#include "apps/bench_choice.h"
#include "apps/bench_device.h"
#include "apps/bench_inputs.h"
#include "apps/bench_measure.h"
#include "apps/bench_report.h"
#include "apps/command_line.h"
#include "apps/report.h"
#include "compression/threshold.h"
#include "core/units.h"

namespace isthmus::apps {
namespace {

constexpr std::uint64_t kMaxElements = 1u << 30;
constexpr double kDefaultKeep = 0.01;

struct BenchArguments {
  std::uint64_t elements = 25'000'000;
  std::uint64_t repeats = 9;
  core::Duration time = std::chrono::minutes(10);
  std::vector<std::string> codecs;
  std::vector<std::string> backends;
  std::vector<std::string> inputs;
  std::vector<double> keeps;
  bool no_paths = false;
  bool json = false;
  bool quiet = false;
};

void declare(CommandLine& line, BenchArguments& arguments) {
  line.number("--elements", arguments.elements,
              "floats in the input (25000000, so that no cache holds them)");
  line.texts("--codec", arguments.codecs, "CODEC",
             "as in the config: int8, or '{ codec: topk, keep: 0.1% }'; may be repeated (every codec)");
  line.custom("--keep", "SHARE", "for sparse codecs that are given by name, as 0.1%; may be repeated (1%)",
              [&arguments](const std::string& text) -> Status {
                const auto share = core::parse_share(text);
                if (!share.ok()) return share.status();
                if (*share <= 0 || *share > 1)
                  return {ErrorCode::kInvalidArgument, "more than 0, at most 100%"};
                arguments.keeps.push_back(*share);
                return {};
              });
  line.texts("--backend", arguments.backends, "NAME",
             "cpu (the best that this CPU has), scalar, another one's name, cuda, or all; may be repeated "
             "(cpu)");
  line.texts(
      "--input", arguments.inputs, "INPUT",
      "gaussian, laplace, heavy, or a safetensors file of gradients; may be repeated (the first three)");
  line.number("--repeats", arguments.repeats, "times that each is measured; the median counts (9)");
  line.duration("--time", arguments.time,
                "fewer repeats, but at least one, when all would take longer (10min)");
  line.flag("--no-paths", arguments.no_paths, "the codecs only, not the steps around them");
  line.flag("--json", arguments.json, "one JSON object on stdout");
  line.flag("-q,--quiet", arguments.quiet, "say nothing while it runs");
  line.examples(
      "isthmus bench codec\n"
      "isthmus bench codec --codec topk --keep 1% --keep 0.1% --input laplace\n"
      "isthmus bench codec --backend all --elements 1000000 --json\n"
      "isthmus bench codec --input gradients/step-100.safetensors");
}

Status check(BenchArguments& arguments) {
  const auto bad = [](std::string what) { return Status(ErrorCode::kInvalidArgument, std::move(what)); };
  if (arguments.elements == 0 || arguments.elements > kMaxElements)
    return bad("--elements: from 1 to " + std::to_string(kMaxElements));
  if (arguments.repeats == 0) return bad("--repeats: at least 1");
  if (arguments.inputs.empty()) {
    for (const std::string_view input : made_inputs()) arguments.inputs.emplace_back(input);
  }
  if (arguments.keeps.empty()) arguments.keeps = {kDefaultKeep};
  return {};
}

// The whole measurement: every input, and on each every codec and path.
class Bench {
 public:
  Bench(const BenchArguments& arguments, std::vector<CodecChoice> codecs, std::vector<BackendChoice> backends)
      : arguments_(arguments),
        codecs_(std::move(codecs)),
        backends_(std::move(backends)),
        bench_(arguments.elements, codecs_),
        timer_(bench_.input(), arguments.repeats, arguments.time / std::max<std::size_t>(passes(), 1)) {}

  Result<BenchReport> run() {
    const auto is_device = [](const BackendChoice& backend) { return backend.kernels == nullptr; };
    if (std::ranges::any_of(backends_, is_device))
      ISTHMUS_RETURN_IF_ERROR(device_.open(arguments_.elements, codecs_, arguments_.repeats));
    for (const std::string& input : arguments_.inputs) {
      say(input);
      input_ = input_name(input);
      ISTHMUS_RETURN_IF_ERROR(fill_input(input, bench_.input()));
      for (const BackendChoice& backend : backends_) {
        if (is_device(backend)) {
          ISTHMUS_RETURN_IF_ERROR(measure_device());
          continue;
        }
        ISTHMUS_RETURN_IF_ERROR(measure_codecs(backend));
        if (!arguments_.no_paths) ISTHMUS_RETURN_IF_ERROR(measure_paths(backend));
      }
      if (!arguments_.no_paths) measure_yardsticks();
    }
    timer_.measure([] {});  // Where only the device was measured, no read was.
    report_.read_gb_per_s = timer_.read_gb_per_s();
    report_.device = device_.device();
    if (!report_.device.empty()) report_.device_read_gb_per_s = device_.read_gb_per_s();
    return std::move(report_);
  }

 private:
  // How many things are timed in all, to divide the time among them.
  std::size_t passes() const {
    std::size_t passes = 2 * codecs_.size() * backends_.size();
    if (!arguments_.no_paths) {
      const std::size_t keeps = arguments_.keeps.size();
      passes += (codecs_.size() + keeps) * backends_.size() + 2 * keeps + 1;
    }
    return passes * arguments_.inputs.size();
  }

  void say(const std::string& what) const {
    if (!arguments_.quiet) std::fprintf(stderr, "bench: %s\n", what.c_str());
  }

  Status measure_codecs(const BackendChoice& backend) {
    for (const CodecChoice& codec : codecs_) {
      say(input_ + ", " + backend.name + ": " + codec.name);
      auto row = bench_.measure(codec, backend, timer_);
      if (!row.ok()) return row.status();
      row->input = input_;
      report_.rows.push_back(*std::move(row));
    }
    return {};
  }

  Status measure_device() {
    ISTHMUS_RETURN_IF_ERROR(device_.set_input(bench_.input()));
    for (const CodecChoice& codec : codecs_) {
      say(input_ + ", cuda: " + codec.name);
      auto row = device_.measure(codec);
      if (!row.ok()) return row.status();
      row->input = input_;
      report_.rows.push_back(*std::move(row));
      if (arguments_.no_paths) continue;
      for (auto path : {device_.measure_delta(codec), device_.measure_to_host(codec)}) {
        if (!path.ok()) return path.status();
        add(*std::move(path));
      }
    }
    return {};
  }

  Status measure_paths(const BackendChoice& backend) {
    say(input_ + ", " + backend.name + ": paths");
    for (const CodecChoice& codec : codecs_) {
      auto row = bench_.measure_delta(codec, backend, timer_);
      if (!row.ok()) return row.status();
      add(*std::move(row));
    }
    for (const double keep : arguments_.keeps) add(bench_.measure_select(keep, backend, timer_));
    return {};
  }

  void measure_yardsticks() {
    for (const double keep : arguments_.keeps) {
      if (arguments_.elements >= compression::kSampleElements) add(bench_.measure_estimate(keep, timer_));
      add(bench_.measure_nth_element(keep, timer_));
    }
    add(bench_.measure_copy(timer_));
  }

  void add(PathRow row) {
    row.input = input_;
    report_.paths.push_back(std::move(row));
  }

  const BenchArguments& arguments_;
  const std::vector<CodecChoice> codecs_;
  const std::vector<BackendChoice> backends_;
  CodecBench bench_;
  BenchTimer timer_;
  DeviceBench device_;
  std::string input_;
  BenchReport report_;
};

Status run(BenchArguments& arguments) {
  ISTHMUS_RETURN_IF_ERROR(check(arguments));
  auto codecs = choose_codecs(arguments.codecs, arguments.keeps);
  if (!codecs.ok()) return codecs.status();
  auto backends = choose_backends(arguments.backends);
  if (!backends.ok()) return backends.status();
  Bench bench(arguments, *std::move(codecs), *std::move(backends));
  const auto report = bench.run();
  if (!report.ok()) return report.status();
  const std::string text = arguments.json ? bench_json(*report) + "\n" : bench_text(*report);
  std::fputs(text.c_str(), stdout);
  return {};
}

}  // namespace

int run_bench_codec(Arguments words) {
  BenchArguments arguments;
  CommandLine line("bench codec",
                   "Measures every codec on this machine: speed beside a streaming read, size, error.");
  declare(line, arguments);
  if (const auto code = line.parse(words)) return *code;
  return report(run(arguments));
}

}  // namespace isthmus::apps
