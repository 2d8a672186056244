// The one way in which threads exchange values: a bounded queue with an eventfd to wait on.
//
// A full mailbox is back-pressure: try_push() leaves the value with the writer, and once the reader has
// made room `on_space` tells the writer to try again.
//
// Threads: many writers, one reader. fd() may be polled by zmq_poll, poll or Asio.
// Memory:  at most `capacity` values.
// Errors:  none; a process that cannot have an eventfd cannot go on (ISTHMUS_CHECK).

#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "core/check.h"

namespace isthmus::core {

template <typename T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity)
      : capacity_(capacity), fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    ISTHMUS_CHECK(fd_ >= 0);
  }
  ~Mailbox() { ::close(fd_); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Readable while there may be something to pop or somebody called wake().
  int fd() const noexcept { return fd_; }

  // Moves from `value` and returns true, or leaves it alone and returns false when full.
  [[nodiscard]] bool try_push(T& value) {
    {
      std::lock_guard lock(mutex_);
      if (values_.size() >= capacity_) {
        writer_waits_ = true;
        return false;
      }
      values_.push_back(std::move(value));
    }
    wake();
    return true;
  }

  // Reader only.
  std::optional<T> try_pop() {
    std::optional<T> value;
    bool tell = false;
    {
      std::lock_guard lock(mutex_);
      if (values_.empty()) return value;
      value.emplace(std::move(values_.front()));
      values_.pop_front();
      // At half, not at one: a writer that is woken for each slot would wake for each value.
      if (writer_waits_ && values_.size() <= capacity_ / 2) {
        writer_waits_ = false;
        tell = true;
      }
    }
    if (tell && on_space_) on_space_();
    return value;
  }

  // Reader only: forget past wake-ups. Call before draining, so that none is lost.
  void clear_wake() noexcept {
    std::uint64_t ignored = 0;
    [[maybe_unused]] const auto n = ::read(fd_, &ignored, sizeof ignored);
  }

  // Any thread: makes fd() readable.
  void wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(fd_, &one, sizeof one);
  }

  // Called on the reader's thread when a refused writer may try again. Set before threads start.
  void on_space(std::function<void()> callback) { on_space_ = std::move(callback); }

 private:
  const std::size_t capacity_;
  const int fd_;
  std::mutex mutex_;
  std::deque<T> values_;
  bool writer_waits_ = false;
  std::function<void()> on_space_;
};

}  // namespace isthmus::core
