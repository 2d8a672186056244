// The verbs of the `isthmus` command: each is a function in a file of its own, apps/<verb>.cc.
//
// A verb declares its flags on a CommandLine, does its work on the main thread and gives the process's exit
// code (core/exit_code.h). Results go to stdout, everything else to stderr.
//
// Threads: verbs run on the main thread, before any other exists.
// Memory:  none.
// Errors:  printed as "isthmus: ..." by report(), and told by the exit code.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace isthmus::apps {

using Arguments = std::span<const std::string>;  // What follows the verb.

struct Command {
  std::string_view verb;
  std::string_view summary;  // One line, for `isthmus --help`.
  int (*run)(Arguments arguments);
};

int run_bench(Arguments arguments);
int run_check(Arguments arguments);
int run_emulate(Arguments arguments);
int run_evaluate(Arguments arguments);
int run_keys(Arguments arguments);
int run_server(Arguments arguments);
int run_status(Arguments arguments);
int run_train(Arguments arguments);
int run_worker(Arguments arguments);

// `isthmus` with these commands to choose from.
int run_isthmus(std::span<const Command> commands, Arguments arguments);

}  // namespace isthmus::apps
