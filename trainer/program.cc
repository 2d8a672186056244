#include "trainer/program.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "core/config_file.h"
#include "core/exit_code.h"
#include "core/signals.h"
#include "trainer/evaluator.h"
#include "trainer/gradient_recorder.h"
#include "trainer/worker_loop.h"

namespace isthmus::trainer {
namespace {

// A worker that is told to end leaves at the next step; one that waits for others for longer than this ends
// all the same, and its lease after it.
constexpr unsigned kGraceSeconds = 3;

constexpr std::string_view kSet = "--set=";

void say(std::string_view line) { std::cerr << line << std::endl; }

template <typename T>
bool read_number(const std::string& text, T& value) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// Takes "--set=KEY=VALUE" words out of the others.
std::vector<std::string> take_overrides(std::vector<std::string>& arguments) {
  std::vector<std::string> overrides;
  std::erase_if(arguments, [&](const std::string& word) {
    if (!word.starts_with(kSet)) return false;
    overrides.push_back(word.substr(kSet.size()));
    return true;
  });
  return overrides;
}

Status run_role(std::vector<std::string> arguments, const WorkloadFactory& factory,
                const std::stop_token& stop) {
  const Status usage(ErrorCode::kInvalidArgument,
                     "usage: worker CONFIG REGION INDEX [FILE|- [FOLDER STEP...]] | evaluate CONFIG "
                     "[REQUEST]; each with --set=KEY=VALUE");
  const std::vector<std::string> overrides = take_overrides(arguments);
  if (arguments.size() < 2) return usage;
  const auto config = core::load_config(arguments[1], overrides);
  if (!config.ok()) return config.status();

  if (arguments[0] == "evaluate" && arguments.size() <= 3) {
    auto workload = factory(*config, {0, 1}, stop);
    if (!workload.ok()) return std::move(workload).status();
    Evaluator evaluator(**workload, *config, say);
    if (arguments.size() == 2) {
      evaluator.serve(std::cin, std::cout);
      return {};
    }
    const auto answer = evaluator.answer(arguments[2]);
    if (answer.ok()) std::cout << *answer << std::endl;
    return answer.status();
  }
  if (arguments[0] != "worker" || arguments.size() < 4 || arguments.size() == 6) return usage;
  std::uint32_t index = 0;
  if (!read_number(arguments[3], index)) return usage;
  std::vector<Step> recorded(arguments.size() > 6 ? arguments.size() - 6 : 0);
  for (std::size_t i = 0; i < recorded.size(); ++i)
    if (!read_number(arguments[6 + i], recorded[i])) return usage;
  const auto place = models::worker_place(*config, arguments[2], index);
  if (!place.ok()) return place.status();
  auto workload = factory(*config, *place, stop);
  if (!workload.ok()) return std::move(workload).status();
  if (!recorded.empty()) {
    auto recorder = models::GradientRecorder::create(*std::move(workload), arguments[5], std::move(recorded));
    if (!recorder.ok()) return std::move(recorder).status();
    workload = *std::move(recorder);
  }
  WorkerOptions options{*config, arguments[2], index, std::nullopt, stop, say};
  if (arguments.size() > 4 && arguments[4] != "-") options.save = arguments[4];
  return run_worker(**workload, options);
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const WorkloadFactory& factory) {
  std::stop_source stop;
  const auto signals = core::StopSignals::create();
  if (!signals.ok()) {
    say(signals.status().to_string());
    return core::exit_code(signals.status());
  }
  const core::SignalThread on_signal(**signals, [&] {
    stop.request_stop();
    alarm(kGraceSeconds);
  });
  Status status;
  try {
    status = run_role(arguments, factory, stop.get_token());
  } catch (const std::exception& e) {
    status = Status(ErrorCode::kInternal, e.what());
  }
  if (status.code() == ErrorCode::kCancelled) {
    say("stopped by a signal");
    return core::exit_code(status);
  }
  if (!status.ok()) say(status.to_string());
  return core::exit_code(status);
}

}  // namespace isthmus::trainer
