#include "apps/command.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

#include "apps/report.h"
#include "core/suggest.h"
#include "isthmus/version.h"

namespace isthmus::apps {
namespace {

std::string help(std::span<const Command> commands) {
  std::string text =
      "isthmus: one model, trained in many regions\n"
      "usage: isthmus VERB [ARGUMENTS]\n\n";
  for (const Command& command : commands) {
    std::string verb(command.verb);
    verb.resize(std::max<std::size_t>(verb.size(), 10), ' ');
    text += "  " + verb + " " + std::string(command.summary) + "\n";
  }
  text +=
      "\n'isthmus VERB --help' says more about each; 'isthmus --version' prints the version.\n"
      "Exit codes: 0 ok, 1 the job failed, 2 cannot connect or authenticate, 3 timed out,\n"
      "4 bad arguments or config, 5 internal.\n";
  return text;
}

int usage_error(const std::string& message) {
  return report(Status(ErrorCode::kInvalidArgument, message + "; see isthmus --help"));
}

int dispatch(std::span<const Command> commands, Arguments arguments) {
  if (arguments.empty()) {
    std::fputs(help(commands).c_str(), stderr);
    return kExitUsage;
  }
  const std::string& first = arguments.front();
  const Arguments rest = arguments.subspan(1);
  if (first == "--help" || first == "-h" || (first == "help" && rest.empty())) {
    std::fputs(help(commands).c_str(), stdout);
    return kExitOk;
  }
  if (first == "--version") {
    std::printf("isthmus %.*s\n", static_cast<int>(kVersion.size()), kVersion.data());
    return kExitOk;
  }
  if (first == "help") {
    const std::vector<std::string> asked{rest.front(), "--help"};
    return dispatch(commands, asked);
  }
  const auto command = std::ranges::find(commands, first, &Command::verb);
  if (command != commands.end()) return command->run(rest);

  if (first.starts_with('-')) return usage_error("'" + first + "' comes after a verb");
  std::vector<std::string_view> verbs;
  for (const Command& known : commands) verbs.push_back(known.verb);
  return usage_error("there is no verb '" + first + "'" + core::suggestion(first, verbs));
}

}  // namespace

int run_isthmus(std::span<const Command> commands, Arguments arguments) {
  try {
    return dispatch(commands, arguments);
  } catch (const std::exception& exception) {  // Of a library, or of the memory.
    return report(Status(ErrorCode::kInternal, std::string("internal error: ") + exception.what()));
  }
}

}  // namespace isthmus::apps
