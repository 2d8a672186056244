// What the trainer draws random numbers for: the first word of a core::Random::Stream. A number that is
// here twice would make two things alike that should have nothing to do with each other.
//
// Threads: constants.  Memory: none.  Errors: none.

#pragma once

#include <cstdint>

namespace isthmus::models {

inline constexpr std::uint32_t kInitialStream = 1;  // {, tensor, 0}
inline constexpr std::uint32_t kSplitStream = 2;    // {, class, attempt}
inline constexpr std::uint32_t kShuffleStream = 3;  // {, worker, epoch}

}  // namespace isthmus::models
