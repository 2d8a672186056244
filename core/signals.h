// SIGINT and SIGTERM as a callback on a thread of their own, instead of handlers that may do nothing.
//
// Threads: construct on the main thread before any other thread exists, so that all inherit the mask; the
//          callback runs on the signal thread, once for each signal.
// Memory:  one thread.
// Errors:  none; a process that cannot mask signals cannot go on (ISTHMUS_CHECK).

#pragma once

#include <functional>
#include <thread>

namespace isthmus::core {

class TerminationSignals {
 public:
  explicit TerminationSignals(std::function<void(int signal)> callback);
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

 private:
  std::function<void(int)> callback_;
  int signal_fd_ = -1;
  int end_fd_ = -1;
  std::jthread thread_;
};

}  // namespace isthmus::core
