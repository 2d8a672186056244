// The process that judges models for `isthmus train` (trainer/evaluator.h), asked over pipes, one request at
// a time, without ever blocking.
//
// Threads: one.
// Memory:  one answer; a line longer than 64 KiB is an error.
// Errors:  an answer of {"error": ...} and a process that ended are Statuses.

#pragma once

#include <optional>
#include <string>

#include "apps/process.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::apps {

class EvaluatorProcess {
 public:
  explicit EvaluatorProcess(Process process) : process_(std::move(process)) {}

  Process& process() noexcept { return process_; }
  bool busy() const noexcept { return busy_; }

  // REQUIRES: not busy().
  Status ask(const std::string& request);

  struct Answer {
    Step step = 0;
    double accuracy = 0;
    double loss = 0;
    float difference = 0;  // Of "compare"
    float largest = 0;
  };
  // The answer, if it has come. Ends being busy.
  std::optional<Result<Answer>> take();

 private:
  Process process_;
  bool busy_ = false;
  std::string line_;
};

}  // namespace isthmus::apps
