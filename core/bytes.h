// Bytes that several parties may read while they last: what messages carry.
//
// Threads: the bytes are immutable once shared; copies of a SharedBytes may live on any thread.
// Memory:  `owner` keeps what `view` shows alive; the last copy frees it, on whichever thread that is.
// Errors:  none; allocation failure is bad_alloc, caught once a thread.

#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace isthmus::core {

struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> view;

  std::size_t size() const noexcept { return view.size(); }
  // A part of these bytes; it shares their owner. REQUIRES: offset + bytes <= size().
  SharedBytes part(std::size_t offset, std::size_t bytes) const {
    return {owner, view.subspan(offset, bytes)};
  }
};

// Writable bytes, uninitialised, that become SharedBytes when they are complete.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : data_(new std::byte[bytes]), bytes_(bytes) {}

  std::span<std::byte> writable() noexcept { return {data_.get(), bytes_}; }
  // The first `bytes` of it. REQUIRES: bytes <= writable().size().
  SharedBytes share(std::size_t bytes) && {
    std::span<const std::byte> view(data_.get(), bytes);
    return {std::shared_ptr<const std::byte[]>(std::move(data_)), view};
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t bytes_;
};

inline SharedBytes copy_bytes(std::span<const std::byte> from) {
  Buffer buffer(from.size());
  if (!from.empty()) std::memcpy(buffer.writable().data(), from.data(), from.size());
  return std::move(buffer).share(from.size());
}

}  // namespace isthmus::core
