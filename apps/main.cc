// The `isthmus` command: gives each verb to the file that is named after it.

#include <signal.h>

#include <string>
#include <vector>

#include "apps/command.h"

namespace {

constexpr isthmus::apps::Command kCommands[] = {
    {"train", "a whole job on this machine: every process, over emulated links", isthmus::apps::run_train},
    {"server", "one server of one region", isthmus::apps::run_server},
    {"worker", "one worker of one region", isthmus::apps::run_worker},
    {"evaluate", "judge a running job's model on the held-out samples", isthmus::apps::run_evaluate},
    {"check", "say what is wrong with a config, or what the job will be", isthmus::apps::run_check},
    {"status", "what a running job is doing", isthmus::apps::run_status},
    {"keys", "make the job's certificates", isthmus::apps::run_keys},
    {"emulate", "a relay that behaves like a slow link, for any TCP program", isthmus::apps::run_emulate},
    {"bench", "how fast the parts are on this machine", isthmus::apps::run_bench},
};

}  // namespace

int main(int argc, char** argv) {
  // A peer or a reader of our output that has gone is an error of that call, not the end of the process.
  signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return isthmus::apps::run_isthmus(kCommands, arguments);
}
