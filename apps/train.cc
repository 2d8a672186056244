// `isthmus train`: a whole job on this machine, from its config to its summary.

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/command_line.h"
#include "apps/programs.h"
#include "apps/report.h"
#include "apps/training.h"
#include "core/config_file.h"
#include "core/layout.h"
#include "core/signals.h"
#include "server/directory.h"
#include "trainer/dataset.h"
#include "trainer/model_table.h"
#include "wan/certificates.h"

namespace isthmus::apps {
namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string run_folder;
  bool quiet = false;
  bool json = false;
};

// What must hold before a process is worth starting. Gives the model's elements.
Result<std::uint64_t> prepare(const core::JobConfig& config) {
  const core::TrainerConfig& trainer = config.trainer;
  if (trainer.model == "custom")
    return Status(ErrorCode::kInvalidArgument,
                  "train runs the reference workers; a custom model's workers are programs of your own (see "
                  "examples/)");
  auto table = models::model_table(trainer);
  if (!table.ok()) return std::move(table).status();
  const auto layout = core::Layout::create(*std::move(table), config.slice_elements);
  if (!layout.ok()) return layout.status();
  ISTHMUS_RETURN_IF_ERROR(server::check_message_limit(config, *layout));
  if (trainer.model != "synthetic") {
    if (access(trainer_program().c_str(), X_OK) != 0)
      return Status(ErrorCode::kNotFound, trainer_program() + " is not there; the model '" + trainer.model +
                                              "' needs it: install libtorch-dev and build again");
    if (const auto data = models::load_dataset(trainer); !data.ok()) return data.status();
  }
  if (config.regions.size() > 1 && !config.security.plaintext) {
    std::vector<std::string> names;
    for (const core::RegionConfig& region : config.regions) names.push_back(region.name);
    const auto keys = wan::ensure_keys(config.security.directory, config.job, names);
    if (!keys.ok()) return keys.status();
  }
  return layout->elements();
}

Status train(const TrainArguments& arguments) {
  const auto config = core::load_config(arguments.config, arguments.overrides);
  if (!config.ok()) return config.status();
  auto signals = core::StopSignals::create();
  if (!signals.ok()) return std::move(signals).status();
  const auto elements = prepare(*config);
  if (!elements.ok()) return elements.status();
  auto folder = RunFolder::create(*config, arguments.run_folder);
  if (!folder.ok()) return std::move(folder).status();

  const auto mode = arguments.quiet              ? ProgressLine::Mode::kQuiet
                    : isatty(STDERR_FILENO) == 1 ? ProgressLine::Mode::kTerminal
                                                 : ProgressLine::Mode::kPlain;
  ProgressLine progress(mode, stderr);
  if (!arguments.quiet) progress.say("run folder: " + folder->path().string());
  Summary summary;
  const Status status = Training(*config, *elements, *folder, **signals, progress).run(summary);
  const Status written = folder->write_summary(to_json(summary));
  std::fputs((arguments.json ? to_json(summary) + "\n" : to_table(summary)).c_str(), stdout);
  std::fflush(stdout);
  return status.ok() ? written : status;
}

}  // namespace

int run_train(Arguments arguments) {
  TrainArguments train_arguments;
  CommandLine line("train",
                   "Runs a whole job on this machine: every process of every region, over emulated links.");
  line.positional("CONFIG", train_arguments.config, "the job's config file", CommandLine::Need::kRequired);
  line.texts("--set", train_arguments.overrides, "KEY=VALUE",
             "override a key of the config, as trainer.stop.steps=100");
  line.text("--run", train_arguments.run_folder, "FOLDER",
            "where the run is kept; run/JOB/DATE-TIME unless given");
  line.flag("--quiet", train_arguments.quiet, "no progress line");
  line.flag("--json", train_arguments.json, "print the summary as one JSON object");
  line.examples("  isthmus train configs/quickstart.yaml\n  isthmus train job.yaml --set seed=2 --json");
  if (const auto code = line.parse(arguments)) return *code;
  return report(train(train_arguments));
}

}  // namespace isthmus::apps
