#include "apps/check.h"

#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "apps/command.h"
#include "apps/command_line.h"
#include "apps/local_checks.h"
#include "apps/plan.h"
#include "apps/plan_report.h"
#include "apps/report.h"
#include "core/config_file.h"
#include "trainer/model_table.h"

namespace isthmus::apps {
namespace {

void add(std::vector<core::ConfigProblem> more, std::vector<core::ConfigProblem>& warnings) {
  warnings.insert(warnings.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

Result<std::string> check(const CheckArguments& arguments) {
  const auto config = core::load_config(arguments.config, arguments.overrides);
  if (!config.ok()) return config.status();
  std::optional<std::vector<TensorSpec>> tensors;
  if (config->trainer.model != "custom") {
    auto table = models::model_table(config->trainer);
    if (!table.ok()) return std::move(table).status();
    tensors = *std::move(table);
  }
  auto plan = make_plan(*config, std::move(tensors));
  if (!plan.ok()) return std::move(plan).status();
  add(find_missing_files(*config), plan->warnings);
  if (arguments.ports) add(find_taken_ports(*config), plan->warnings);
  return arguments.json ? plan_json(*config, *plan) + "\n" : plan_text(*config, *plan);
}

int run_check(Arguments words) {
  CheckArguments arguments;
  CommandLine line("check",
                   "Says what is wrong with a config file, or what the job will be: processes, slices, "
                   "memory, and what a sync costs on its links.");
  line.positional("CONFIG", arguments.config, "the job's config file", CommandLine::Need::kRequired);
  line.texts("--set", arguments.overrides, "KEY=VALUE", "instead of what the file says; may be repeated");
  line.flag("--ports", arguments.ports, "also look whether the ports on this machine are free");
  line.flag("--json", arguments.json, "one JSON object on stdout");
  line.examples(
      "isthmus check job.yaml\n"
      "isthmus check job.yaml --set compression.wan=int8 --json");
  if (const auto code = line.parse(words)) return *code;
  const auto text = check(arguments);
  if (text.ok()) std::fputs(text->c_str(), stdout);
  return report(text.status());
}

}  // namespace isthmus::apps
