// isthmus worker, isthmus evaluate: the worker program of the job's model. The synthetic model's is part of
// this command; models that need libtorch have one of their own, isthmus-trainer, which takes its place.
//
// Threads: the main thread.  Memory: the worker's.  Errors: on stderr; the result is the exit code.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::apps {

struct WorkerArguments {
  std::string config;
  std::string region;
  std::uint32_t worker = 0;
  std::string save;  // Write the shared model there at the end; empty: do not.
};
int run_worker(const WorkerArguments& arguments);

struct EvaluateArguments {
  std::string config;
  std::string region;
  std::string which = "shared";  // shared, own, final
  std::string save;
  bool serve = false;  // Answer requests on standard input instead (trainer/evaluator.h).
};
int run_evaluate(const EvaluateArguments& arguments);

// The program that `config`'s model needs: this one, or isthmus-trainer beside it.
std::string this_program();
std::string trainer_program();

}  // namespace isthmus::apps
