// The process that judges models for `isthmus train` (trainer/evaluator.h), asked over pipes, one request at
// a time, without ever blocking. It keeps nothing between requests: one that ends before its time is started
// again, with the request that it owes an answer to, a few times.
//
// Threads: one; the main thread, which must be the one that starts processes (process.h).
// Memory:  one answer; a line longer than 64 KiB counts as the process's end.
// Errors:  an answer of {"error": ...} is a Status; so is a process that ended too often (gone()).

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apps/process.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::apps {

class EvaluatorProcess {
 public:
  // How often it is started anew.
  static constexpr int kMaxRestarts = 3;

  // `options.pipe` is set. `say` is told of every restart.
  static Result<EvaluatorProcess> start(ProcessOptions options, std::function<void(const std::string&)> say);

  Process& process() noexcept { return process_; }
  // Readable when take() has something to do; negative once it is gone.
  int fd() const noexcept { return gone() ? -1 : process_.output_fd(); }
  bool busy() const noexcept { return !request_.empty(); }
  bool gone() const noexcept { return !failure_.ok(); }

  // REQUIRES: not busy().
  void ask(const std::string& request);

  struct Answer {
    Step step = 0;
    double accuracy = 0;
    double loss = 0;
    float difference = 0;  // Of "compare"
    float largest = 0;
  };
  // The answer, if it has come. Ends being busy. Once gone(): kFailed, with its last words.
  std::optional<Result<Answer>> take();

 private:
  EvaluatorProcess(ProcessOptions options, Process process, std::function<void(const std::string&)> say)
      : options_(std::move(options)), process_(std::move(process)), say_(std::move(say)) {}
  void send();
  void start_again();

  ProcessOptions options_;
  Process process_;
  std::function<void(const std::string&)> say_;
  int restarts_ = 0;
  std::string request_;  // Not answered yet, with its line's end.
  std::string line_;
  Status failure_;
};

}  // namespace isthmus::apps
