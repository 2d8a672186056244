// `isthmus train`: a whole job on this machine, from its config to its summary.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
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
#include "server/checkpoint_store.h"
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
  std::string resume;
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

// The step that all servers of the run have a checkpoint of or, where they have none in common, the earliest
// of their newest.
Result<Step> step_to_resume(const core::JobConfig& config) {
  if (!config.checkpoint)
    return Status(ErrorCode::kInvalidArgument, "the run has no checkpoints: its config says no 'checkpoint'");
  Step step = ~Step{0};
  for (const core::RegionConfig& region : config.regions) {
    for (std::uint32_t server = 0; server < region.servers.size(); ++server) {
      const auto folder = server::checkpoint_folder(config.checkpoint->directory, region.name, server);
      const auto newest = server::CheckpointStore::newest_step(folder);
      if (!newest) return Status(ErrorCode::kNotFound, "no checkpoint is in " + folder.string());
      step = std::min(step, *newest);
    }
  }
  return step;
}

// Checkpoints lie in the run's folder unless the config says otherwise; there must be none of another run.
Status place_checkpoints(core::JobConfig& config, const std::filesystem::path& folder) {
  if (!config.checkpoint) return {};
  std::string& directory = config.checkpoint->directory;
  if (directory == core::default_checkpoint_directory(config.job)) directory = folder / "checkpoints";
  directory = std::filesystem::absolute(directory);
  for (const core::RegionConfig& region : config.regions) {
    for (std::uint32_t server = 0; server < region.servers.size(); ++server) {
      const auto there = server::checkpoint_folder(directory, region.name, server);
      if (server::CheckpointStore::newest_step(there))
        return {ErrorCode::kInvalidArgument, there.string() +
                                                 " holds checkpoints of another run: go on with it "
                                                 "(--resume RUN), or give another "
                                                 "checkpoint.directory"};
    }
  }
  return {};
}

Status train(const TrainArguments& arguments) {
  const bool resumes = !arguments.resume.empty();
  if (resumes == !arguments.config.empty())
    return {ErrorCode::kInvalidArgument, "train: give a CONFIG, or the run to go on with (--resume RUN)"};
  if (resumes && !arguments.run_folder.empty())
    return {ErrorCode::kInvalidArgument, "train: a run that is resumed stays in its folder; leave --run out"};
  const std::filesystem::path resumed = arguments.resume;
  auto config =
      core::load_config(resumes ? (resumed / "config.yaml").string() : arguments.config, arguments.overrides);
  if (!config.ok()) return config.status();
  auto signals = core::StopSignals::create();
  if (!signals.ok()) return std::move(signals).status();
  const auto elements = prepare(*config);
  if (!elements.ok()) return elements.status();
  std::optional<Step> from_step;
  std::filesystem::path path = resumes ? resumed : std::filesystem::path(arguments.run_folder);
  if (path.empty()) path = RunFolder::new_path(config->job);
  if (resumes) {
    const auto step = step_to_resume(*config);
    if (!step.ok()) return step.status();
    from_step = *step;
  } else {
    ISTHMUS_RETURN_IF_ERROR(place_checkpoints(*config, path));
  }
  auto folder = resumes ? RunFolder::reopen(*config, path) : RunFolder::create(*config, path);
  if (!folder.ok()) return std::move(folder).status();

  const auto mode = arguments.quiet              ? ProgressLine::Mode::kQuiet
                    : isatty(STDERR_FILENO) == 1 ? ProgressLine::Mode::kTerminal
                                                 : ProgressLine::Mode::kPlain;
  ProgressLine progress(mode, stderr);
  if (!arguments.quiet) progress.say("run folder: " + folder->path().string());
  if (!arguments.quiet && from_step) progress.say("resumes at step " + std::to_string(*from_step));
  Summary summary;
  const Status status = Training(*config, *elements, *folder, **signals, progress, from_step).run(summary);
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
  line.positional("CONFIG", train_arguments.config, "the job's config file", CommandLine::Need::kOptional);
  line.texts("--set", train_arguments.overrides, "KEY=VALUE",
             "override a key of the config, as trainer.stop.steps=100");
  line.text("--run", train_arguments.run_folder, "FOLDER",
            "where the run is kept; run/JOB/DATE-TIME unless given");
  line.text("--resume", train_arguments.resume, "RUN",
            "go on with the run in this folder from its checkpoints, instead of CONFIG");
  line.flag("--quiet", train_arguments.quiet, "no progress line");
  line.flag("--json", train_arguments.json, "print the summary as one JSON object");
  line.examples(
      "  isthmus train configs/quickstart.yaml\n  isthmus train job.yaml --set seed=2 --json\n"
      "  isthmus train --resume run/job/20260101-120000 --set trainer.stop.steps=6000");
  if (const auto code = line.parse(arguments)) return *code;
  return report(train(train_arguments));
}

}  // namespace isthmus::apps
