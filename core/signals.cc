#include "core/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/check.h"

namespace isthmus::core {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopSignals)
    if (signal == SIGTERM || !is_ignored(signal)) sigaddset(&set, signal);
  return set;
}

}  // namespace

Result<std::unique_ptr<StopSignals>> StopSignals::create() {
  const sigset_t set = stop_set();
  const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return Status(ErrorCode::kInternal, std::string("signalfd: ") + std::strerror(errno));
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return std::unique_ptr<StopSignals>(new StopSignals(fd));
}

StopSignals::~StopSignals() {
  // One that came and was not asked for would end a process that has something left to say.
  while (take()) {
  }
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::close(fd_);
}

std::optional<int> StopSignals::take() {
  signalfd_siginfo info{};
  if (::read(fd_, &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

std::optional<int> StopSignals::wait_for(std::chrono::nanoseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  for (;;) {
    if (const auto signal = take()) return signal;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd readable{fd_, POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>(std::min<long>(left, 3'600'000)));
  }
}

SignalThread::SignalThread(StopSignals& signals, std::function<void()> callback)
    : end_fd_(eventfd(0, EFD_CLOEXEC)) {
  ISTHMUS_CHECK(end_fd_ >= 0);
  thread_ = std::jthread([this, &signals, callback = std::move(callback)] {
    pollfd entries[] = {{signals.fd(), POLLIN, 0}, {end_fd_, POLLIN, 0}};
    while (true) {
      if (::poll(entries, 2, -1) < 0) continue;
      if (entries[1].revents != 0) return;
      if (signals.take()) callback();
    }
  });
}

SignalThread::~SignalThread() {
  const std::uint64_t one = 1;
  ISTHMUS_CHECK(::write(end_fd_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(end_fd_);
}

}  // namespace isthmus::core
