#include "apps/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

namespace isthmus::apps {
namespace {

Status system_error(const std::string& what) {
  return {ErrorCode::kInternal, what + ": " + std::strerror(errno)};
}

// Between fork and exec: async-signal-safe calls only.
struct Child {
  char* const* argv;
  int log;
  int input = -1;  // The ends that become standard input and output, with pipes.
  int output = -1;
  int error_pipe;  // Tells the parent errno when the program cannot be started.
  int nice;
  pid_t parent;
};

[[noreturn]] void become(const Child& child) {
  // A parent that died before this line would never send the signal.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != child.parent) _exit(127);
  std::signal(SIGPIPE, SIG_DFL);  // What we ignore would stay ignored; what we handle does not.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(child.input >= 0 ? child.input : null, STDIN_FILENO);
  dup2(child.output >= 0 ? child.output : child.log, STDOUT_FILENO);
  dup2(child.log, STDERR_FILENO);
  // What somebody forgot to mark is closed at exec; kernels before 5.11 cannot do this, and need not.
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  // A group of its own: Ctrl-C on the terminal reaches the parent alone, who ends the children in order.
  setpgid(0, 0);
  if (child.nice != 0) [[maybe_unused]]
    const int was = nice(child.nice);
  execvp(child.argv[0], child.argv);
  const int error = errno;
  [[maybe_unused]] const auto n = write(child.error_pipe, &error, sizeof error);
  _exit(127);
}

}  // namespace

std::string Ending::to_string() const {
  if (signal != 0) return "killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  return "exit code " + std::to_string(exit_code);
}

Result<Process> Process::start(ProcessOptions options) {
  Process process(std::move(options));
  const int log = open(process.options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return system_error(process.options_.log.string());
  int errors[2] = {-1, -1};
  int input[2] = {-1, -1};
  int output[2] = {-1, -1};
  bool piped = pipe2(errors, O_CLOEXEC) == 0;
  if (process.options_.pipe) piped = piped && pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0;
  if (!piped) return system_error("pipe");

  std::vector<char*> argv;
  for (std::string& argument : process.options_.command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const Child child{argv.data(), log, input[0], output[1], errors[1], process.options_.nice, getpid()};
  process.id_ = fork();
  if (process.id_ == 0) become(child);
  for (const int fd : {log, errors[1], input[0], output[1]}) {
    if (fd >= 0) close(fd);
  }
  process.input_fd_ = input[1];
  process.output_fd_ = output[0];
  if (process.output_fd_ >= 0) fcntl(process.output_fd_, F_SETFL, O_NONBLOCK);
  if (process.id_ < 0) {
    close(errors[0]);
    return system_error("fork");
  }
  process.pid_fd_ = static_cast<int>(syscall(SYS_pidfd_open, process.id_, 0));
  int error = 0;
  const bool failed = read(errors[0], &error, sizeof error) == sizeof error;
  close(errors[0]);
  if (failed) return Status(ErrorCode::kNotFound, process.options_.command[0] + ": " + std::strerror(error));
  if (process.pid_fd_ < 0) return system_error("pidfd_open");
  return process;
}

Process::Process(Process&& other) noexcept
    : options_(std::move(other.options_)),
      id_(std::exchange(other.id_, -1)),
      pid_fd_(std::exchange(other.pid_fd_, -1)),
      input_fd_(std::exchange(other.input_fd_, -1)),
      output_fd_(std::exchange(other.output_fd_, -1)),
      ending_(other.ending_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    this->~Process();
    new (this) Process(std::move(other));
  }
  return *this;
}

Process::~Process() {
  if (id_ > 0 && !ending_) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  close_all();
}

void Process::close_all() noexcept {
  for (int* fd : {&pid_fd_, &input_fd_, &output_fd_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

std::optional<Ending> Process::ended() {
  int status = 0;
  if (!ending_ && id_ > 0 && waitpid(id_, &status, WNOHANG) == id_) {
    ending_ = WIFSIGNALED(status) ? Ending{0, WTERMSIG(status)} : Ending{WEXITSTATUS(status), 0};
  }
  return ending_;
}

Ending Process::end_within(std::chrono::milliseconds grace) noexcept {
  pollfd entry{pid_fd_, POLLIN, 0};
  (void)::poll(&entry, 1, static_cast<int>(grace.count()));
  signal(SIGKILL);
  while (!ended()) (void)::poll(&entry, 1, -1);
  return *ending_;
}

void Process::signal(int number) noexcept {
  if (id_ > 0 && !ended()) kill(id_, number);
}

std::string how_it_ended(Process& process, std::size_t lines) {
  std::string text = process.name() + " ended: " + process.end_within(std::chrono::seconds(1)).to_string();
  for (const std::string& line : last_lines(process.log(), lines)) text += "\n  | " + line;
  return text + "\n  (" + process.log().string() + ")";
}

std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t lines) {
  constexpr std::streamoff kMost = 64 * 1024;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const std::streamoff size = in.tellg();
  std::string text(static_cast<std::size_t>(std::clamp<std::streamoff>(size, 0, kMost)), '\0');
  in.seekg(size - static_cast<std::streamoff>(text.size()));
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  // Without the half line at its begin, unless one line fills it all.
  if (size > kMost) text.erase(0, text.find('\n') + 1);

  std::vector<std::string> all;
  std::istringstream in_text(std::move(text));
  for (std::string line; std::getline(in_text, line);) all.push_back(std::move(line));
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(lines));
  return all;
}

}  // namespace isthmus::apps
