#include "apps/worker.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "apps/exit_code.h"
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

int fail(const Status& status) {
  std::cerr << "isthmus: " << status.to_string() << std::endl;
  return exit_code(status);
}

int run(const std::string& config_path, const std::vector<std::string>& program_arguments) {
  const auto config = core::load_config(config_path);
  if (!config.ok()) return fail(config.status());
  if (config->trainer.model == "synthetic") return trainer::run_program(program_arguments, make_synthetic);
  if (config->trainer.model == "custom")
    return fail(
        {ErrorCode::kInvalidArgument, "a custom model's workers are programs of your own (see examples/)"});

  const std::string program = trainer_program();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : program_arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return fail({ErrorCode::kNotFound, program + ": " + std::strerror(errno) + "; the model '" +
                                         config->trainer.model +
                                         "' needs it: install libtorch-dev and build again"});
}

}  // namespace

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string trainer_program() {
  return (std::filesystem::path(this_program()).parent_path() / "isthmus-trainer").string();
}

int run_worker(const WorkerArguments& arguments) {
  std::vector<std::string> program = {"worker", arguments.config, arguments.region,
                                      std::to_string(arguments.worker)};
  if (!arguments.save.empty()) program.push_back(arguments.save);
  return run(arguments.config, program);
}

int run_evaluate(const EvaluateArguments& arguments) {
  std::vector<std::string> program = {"evaluate", arguments.config};
  if (!arguments.serve) {
    std::string request = arguments.which + " " + arguments.region;
    if (!arguments.save.empty()) request += " " + arguments.save;
    program.push_back(request);
  }
  return run(arguments.config, program);
}

}  // namespace isthmus::apps
