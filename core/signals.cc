#include "core/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "core/check.h"

namespace isthmus::core {
namespace {

sigset_t termination_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

TerminationSignals::TerminationSignals(std::function<void(int)> callback) : callback_(std::move(callback)) {
  const sigset_t set = termination_signals();
  ISTHMUS_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  end_fd_ = eventfd(0, EFD_CLOEXEC);
  ISTHMUS_CHECK(signal_fd_ >= 0 && end_fd_ >= 0);
  thread_ = std::jthread([this] {
    pollfd entries[] = {{signal_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}};
    while (true) {
      if (poll(entries, 2, -1) < 0) continue;
      if (entries[1].revents != 0) return;
      signalfd_siginfo info{};
      if (read(signal_fd_, &info, sizeof info) == sizeof info) callback_(static_cast<int>(info.ssi_signo));
    }
  });
}

TerminationSignals::~TerminationSignals() {
  const std::uint64_t one = 1;
  ISTHMUS_CHECK(write(end_fd_, &one, sizeof one) == sizeof one);
  thread_.join();
  close(signal_fd_);
  close(end_fd_);
  const sigset_t set = termination_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace isthmus::core
