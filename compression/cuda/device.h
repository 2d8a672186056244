// A CUDA device, as far as those who call the device codecs need one. No header of the toolkit is included,
// and everything links without it too: then there is no device.
//
// Threads: each object belongs to one.
// Memory:  DeviceMemory and PinnedMemory own theirs.
// Errors:  kUnavailable where there is no device, kResourceExhausted for memory, kInternal for what the CUDA
//          runtime says otherwise.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "isthmus/status.h"

struct CUstream_st;
struct CUevent_st;

namespace isthmus::compression {

// cudaStream_t and cudaEvent_t.
using DeviceStream = CUstream_st*;
using DeviceEvent = CUevent_st*;

// The name of the current device.
Result<std::string> device_name();

// Where memory is: on the current device, or on the host, where the device copies from and to it beside other
// work.
enum class MemoryPlace { kDevice, kPinned };

// Memory of one's own, not initialised.
template <MemoryPlace kPlace>
class OwnedMemory {
 public:
  // Gives back what it held before.
  Status allocate(std::size_t bytes);

  std::byte* data() const noexcept { return memory_.get(); }
  std::size_t size() const noexcept { return bytes_; }
  std::span<std::byte> span() const noexcept { return {memory_.get(), bytes_}; }
  template <typename T>
  std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(memory_.get()), bytes_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};
extern template class OwnedMemory<MemoryPlace::kDevice>;
extern template class OwnedMemory<MemoryPlace::kPinned>;
using DeviceMemory = OwnedMemory<MemoryPlace::kDevice>;
using PinnedMemory = OwnedMemory<MemoryPlace::kPinned>;

// A stream of one's own; the default stream before create().
class OwnedStream {
 public:
  Status create();
  DeviceStream get() const noexcept { return stream_.get(); }
  // Waits for all that was enqueued.
  Status synchronize() const;

 private:
  struct Destroy {
    void operator()(DeviceStream stream) const noexcept;
  };
  std::unique_ptr<CUstream_st, Destroy> stream_;
};

// A moment of a stream, and the time between two. REQUIRES: create() first.
class OwnedEvent {
 public:
  Status create();
  Status record(DeviceStream stream);
  bool passed() const;  // True when record() was never called.
  Status synchronize() const;
  Result<double> seconds_since(const OwnedEvent& earlier) const;  // REQUIRES: both have passed.

 private:
  struct Destroy {
    void operator()(DeviceEvent event) const noexcept;
  };
  std::unique_ptr<CUevent_st, Destroy> event_;
};

// Enqueues. REQUIRES: for a copy that does not wait, pinned memory on the host's side.
Status copy_to_device(void* to, const void* from, std::size_t bytes, DeviceStream stream);
Status copy_to_host(void* to, const void* from, std::size_t bytes, DeviceStream stream);

Status zero_on_device(void* to, std::size_t bytes, DeviceStream stream);

// Enqueues a pass that only reads `in`: what other passes are measured by. `sink` is one float of the device.
Status read_on_device(std::span<const float> in, float* sink, DeviceStream stream);

}  // namespace isthmus::compression
