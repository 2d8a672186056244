// Memory for measuring passes over it: on a boundary of 2 MiB, and the kernel is asked for pages of that
// size, because with pages of 4 KiB a pass measures the TLB as much as itself.
//
// Threads: one.
// Memory:  owns it; zeroed by the kernel.
// Errors:  none; what cannot be had is std::bad_alloc.

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace isthmus::apps {

template <typename T>
class BenchMemory {
 public:
  explicit BenchMemory(std::size_t elements) : elements_(elements) {
    constexpr std::size_t kPage = std::size_t{2} << 20;
    const std::size_t bytes = (elements * sizeof(T) + kPage) / kPage * kPage;  // Never 0.
    memory_.reset(std::aligned_alloc(kPage, bytes));
    if (memory_ == nullptr) throw std::bad_alloc();
    madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // A wish: without it, the pages are small.
    std::memset(memory_.get(), 0, bytes);
  }

  std::span<T> span() noexcept { return {static_cast<T*>(memory_.get()), elements_}; }
  std::span<const T> span() const noexcept { return {static_cast<const T*>(memory_.get()), elements_}; }

 private:
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::size_t elements_;
  std::unique_ptr<void, Free> memory_;
};

}  // namespace isthmus::apps
