// `isthmus worker` and `isthmus evaluate`: the worker program of the job's model. The synthetic model's is
// part of this command; models that need libtorch have one of their own, isthmus-trainer, which takes our
// place.

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/command.h"
#include "apps/command_line.h"
#include "apps/programs.h"
#include "apps/report.h"
#include "core/config_file.h"
#include "trainer/program.h"
#include "trainer/synthetic.h"

namespace isthmus::apps {
namespace {

Result<std::unique_ptr<models::Workload>> make_synthetic(const core::JobConfig& config,
                                                         models::WorkerPlace place, std::stop_token stop) {
  auto workload = models::SyntheticWorkload::create(config.trainer, place, std::move(stop));
  if (!workload.ok()) return std::move(workload).status();
  return std::unique_ptr<models::Workload>(*std::move(workload));
}

int run(const std::string& config_path, const std::vector<std::string>& overrides,
        std::vector<std::string> program_arguments) {
  const auto config = core::load_config(config_path, overrides);
  if (!config.ok()) return report(config.status());
  for (const std::string& text : overrides) program_arguments.push_back("--set=" + text);
  if (config->trainer.model == "synthetic") return trainer::run_program(program_arguments, make_synthetic);
  if (config->trainer.model == "custom")
    return report(
        {ErrorCode::kInvalidArgument, "a custom model's workers are programs of your own (see examples/)"});

  const std::string program = trainer_program();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : program_arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return report({ErrorCode::kNotFound, program + ": " + std::strerror(errno) + "; the model '" +
                                           config->trainer.model +
                                           "' needs it: install libtorch-dev and build again"});
}

}  // namespace

int run_worker(Arguments arguments) {
  std::string config;
  std::string region;
  std::string save;
  std::string gradients;
  std::vector<std::string> steps;
  std::vector<std::string> overrides;
  std::uint64_t worker = 0;
  CommandLine line("worker", "Runs one worker of one region, until its part of the job is done.");
  line.positional("CONFIG", config, "the job's config file", CommandLine::Need::kRequired);
  line.text("--region", region, "NAME", "the region that this worker belongs to");
  line.number("--worker", worker, "which of the region's workers this is, from 0");
  line.texts("--set", overrides, "KEY=VALUE",
             "override a key of the config; the same for all processes of a job");
  line.text("--save", save, "FILE", "wait for the last sync and write the shared model there (safetensors)");
  line.text("--gradients", gradients, "FOLDER",
            "write the gradients of some steps there, as step-N.safetensors");
  line.custom("--gradients-at", "STEP", "which steps; may be repeated (1, 100 and 1000)",
              [&steps](const std::string& text) -> Status {
                const auto step = core::parse_integer(text);
                if (step.ok()) steps.push_back(std::to_string(*step));
                return step.status();
              });
  line.examples(
      "  isthmus worker job.yaml --region frankfurt --worker 1\n"
      "  isthmus worker job.yaml --region frankfurt --gradients run/gradients --gradients-at 500");
  if (const auto code = line.parse(arguments)) return *code;
  if (region.empty()) return report({ErrorCode::kInvalidArgument, "worker: --region is missing"});
  if (worker > ~std::uint32_t{0})
    return report({ErrorCode::kInvalidArgument, "--worker " + std::to_string(worker) + ": too large"});
  std::vector<std::string> program = {"worker", config, region, std::to_string(worker)};
  if (!save.empty() || !gradients.empty()) program.push_back(save.empty() ? "-" : save);
  if (!gradients.empty()) {
    if (steps.empty()) steps = {"1", "100", "1000"};
    program.push_back(gradients);
    program.insert(program.end(), steps.begin(), steps.end());
  }
  return run(config, overrides, std::move(program));
}

int run_evaluate(Arguments arguments) {
  std::string config;
  std::string region;
  std::string which = "shared";
  std::string save;
  bool serve = false;
  std::vector<std::string> overrides;
  CommandLine line("evaluate",
                   "Judges a running job's model on the held-out samples; prints one JSON object.");
  line.positional("CONFIG", config, "the job's config file", CommandLine::Need::kRequired);
  line.text("--region", region, "NAME", "read the values from this region's servers");
  line.text(
      "--which", which, "WHICH",
      "shared (what all regions last agreed on), own (the region's copy before the last sync) or final");
  line.texts("--set", overrides, "KEY=VALUE", "override a key of the config");
  line.text("--save", save, "FILE", "also write the values there (safetensors)");
  line.flag("--serve", serve,
            "answer requests on standard input, one a line: 'WHICH REGION [FILE]' or 'compare'");
  line.examples("  isthmus evaluate job.yaml --region frankfurt");
  if (const auto code = line.parse(arguments)) return *code;
  std::vector<std::string> program = {"evaluate", config};
  if (!serve) {
    if (region.empty()) return report({ErrorCode::kInvalidArgument, "evaluate: --region is missing"});
    program.push_back(which + " " + region + (save.empty() ? "" : " " + save));
  }
  return run(config, overrides, std::move(program));
}

}  // namespace isthmus::apps
