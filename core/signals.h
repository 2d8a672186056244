// SIGINT, SIGTERM and SIGHUP as something to wait for, instead of something that interrupts.
//
// Threads: create() on the main thread before there are others: they inherit that the signals are blocked.
// Memory:  one file descriptor, and a thread where one is asked for; at the end the signals are unblocked
// again. Errors:  kInternal if the system has no signalfd.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "isthmus/status.h"

namespace isthmus::core {

class StopSignals {
 public:
  // Signals that the parent told us to ignore (nohup, a shell's "&") stay ignored; SIGTERM never is.
  static Result<std::unique_ptr<StopSignals>> create();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const { return fd_; }  // Readable when take() has one.

  // The number of a signal that came and was not taken yet.
  std::optional<int> take();
  // The same, but waits for one.
  std::optional<int> wait_for(std::chrono::nanoseconds time);

 private:
  explicit StopSignals(int fd) : fd_(fd) {}
  int fd_;
};

// Calls back for each of them, on a thread of its own, for a main thread that waits for something else.
// Whatever the callback uses is made before and destroyed after this; a signal that came earlier is served.
class SignalThread {
 public:
  // `signals` outlives this.
  SignalThread(StopSignals& signals, std::function<void()> callback);
  ~SignalThread();  // No callback runs after it.
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  int end_fd_;
  std::jthread thread_;
};

}  // namespace isthmus::core
