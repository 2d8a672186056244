// Ascending indices as Rice codes of the gaps between them.
//
// A gap is what is left out between two neighbours: next - previous - 1. Its code is gap >> parameter zeros,
// a one, and the low `parameter` bits; bits fill bytes from the low end. Parameter 0 is a bitmap. With the
// best parameter, positions that are independent of each other cost 0.3 to 1.4 % more than their entropy.
//
// Threads: any.
// Memory:  none allocated.
// Errors:  decoding treats its bytes as hostile: bounded work, and false for any that no encoder writes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus::compression {

inline constexpr unsigned kMaxRiceParameter = 31;
inline constexpr std::size_t kRiceBlock = 256;  // Indices.
// With the best parameter a gap takes 33 bits on average at most: 32 with parameter 31, but for one more
// zero.
inline constexpr std::size_t kMaxRiceBytes = (kRiceBlock * 33 + 7) / 8;

// The one that makes the fewest bits. REQUIRES: strictly ascending indices, at most kRiceBlock.
unsigned best_rice_parameter(std::span<const std::uint32_t> indices) noexcept;

// Writes the gaps after the first index; returns the bytes. REQUIRES: as above; room for kMaxRiceBytes when
// the parameter is the best one.
std::size_t rice_encode(std::span<const std::uint32_t> indices, unsigned parameter, std::byte* out) noexcept;

// Fills `indices` from the second on, given the first. False unless `in` holds exactly these gaps, its last
// bits are 0, and every index is below `elements`. REQUIRES: not empty, indices[0] < elements.
bool rice_decode(std::span<const std::byte> in, unsigned parameter, std::uint64_t elements,
                 std::span<std::uint32_t> indices) noexcept;

}  // namespace isthmus::compression
