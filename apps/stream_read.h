// The fastest that one thread can look at memory: what every other pass is compared with.
//
// Threads: pure.  Memory: reads only.  Errors: none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus::apps {

// Reads every byte and does next to nothing with it. The result keeps a compiler from leaving that out: the
// exclusive or of all whole words of 64 bits.
std::uint64_t stream_read(std::span<const std::byte> bytes) noexcept;

}  // namespace isthmus::apps
