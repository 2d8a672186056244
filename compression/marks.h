// The elements that reach a threshold, one after another.
//
// Threads: any.  Memory: 512 bytes of stack.  Errors: none.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "compression/change.h"
#include "compression/kernels/kernels.h"
#include "compression/topk_pass.h"

namespace isthmus::compression {

// Calls visit(index) for each element of |change| that is at least `threshold`, or NaN, ascending, until it
// returns false. Returns the number of elements looked at, which may be some more than the last visited.
template <typename Visit>
std::size_t for_each_mark(const Change& change, const Kernels& kernels, float threshold, Visit visit) {
  constexpr std::size_t piece_elements = kPassPiece;
  std::uint64_t marks[piece_elements / 64];
  const float* a = change.values.data();
  const float* b = change.is_difference() ? change.view.data() : nullptr;
  for (std::size_t at = 0; at < change.size(); at += piece_elements) {
    const std::size_t n = std::min(piece_elements, change.size() - at);
    kernels.mark(a + at, b == nullptr ? nullptr : b + at, n, threshold, marks);
    for (std::size_t word = 0; word * 64 < n; ++word) {
      // The next piece: while marks are visited nothing else would ask for it.
      for (std::size_t line = 0; line < 64; line += 16) {
        const std::size_t ahead = at + piece_elements + word * 64 + line;
        __builtin_prefetch(a + ahead);
        if (b != nullptr) __builtin_prefetch(b + ahead);
      }
      for (std::uint64_t left = marks[word]; left != 0; left &= left - 1) {
        if (!visit(at + word * 64 + static_cast<std::size_t>(std::countr_zero(left)))) return at + n;
      }
    }
  }
  return change.size();
}

}  // namespace isthmus::compression
