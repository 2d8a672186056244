// Child processes that cannot outlive their parent.
//
// Threads: start children from the main thread: the kernel's parent-death signal follows the thread that
//          forked. A Process belongs to one thread.
// Memory:  small.
// Errors:  a program that cannot be started is kNotFound or kInternal, with its name.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "isthmus/status.h"

namespace isthmus::apps {

struct ProcessOptions {
  std::string name;                  // For people: "frankfurt/worker 1".
  std::vector<std::string> command;  // Program and arguments.
  std::filesystem::path log;         // Its standard error, and its output unless piped.
  int nice = 0;                      // Added to the parent's.
  bool pipe = false;                 // Its standard input and output are pipes of ours.
};

// How a process ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;  // Not 0: it was killed.
  bool ok() const noexcept { return exit_code == 0 && signal == 0; }
  std::string to_string() const;  // "exit code 4", "killed by signal 9"
};

class Process {
 public:
  static Result<Process> start(ProcessOptions options);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();  // Kills it if it still runs, and waits for it.

  const std::string& name() const noexcept { return options_.name; }
  const std::filesystem::path& log() const noexcept { return options_.log; }
  pid_t id() const noexcept { return id_; }
  int exit_fd() const noexcept { return pid_fd_; }       // Readable once it has ended.
  int input_fd() const noexcept { return input_fd_; }    // With `pipe`: write requests here ...
  int output_fd() const noexcept { return output_fd_; }  // ... and read answers here (non-blocking).

  // How it ended; nothing while it runs. Never blocks.
  std::optional<Ending> ended();
  void signal(int number) noexcept;
  // Waits for its end, and brings it about after `grace`.
  Ending end_within(std::chrono::milliseconds grace) noexcept;

 private:
  explicit Process(ProcessOptions options) : options_(std::move(options)) {}
  void close_all() noexcept;

  ProcessOptions options_;
  pid_t id_ = -1;
  int pid_fd_ = -1;
  int input_fd_ = -1;
  int output_fd_ = -1;
  std::optional<Ending> ending_;
};

// "NAME ended: exit code 4", its log's last lines, and where the log is. Ends it if it still runs after a
// second.
std::string how_it_ended(Process& process, std::size_t lines);

// The last lines of a file; empty when it cannot be read.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t lines);

}  // namespace isthmus::apps
