#include "compression/change.h"

#include <algorithm>

namespace isthmus::compression {

bool is_finite(const Change& change, const Kernels& kernels) {
  constexpr std::size_t piece_elements = 2048;
  alignas(64) float difference[piece_elements];
  for (std::size_t at = 0; at < change.size(); at += piece_elements) {
    const std::size_t n = std::min(piece_elements, change.size() - at);
    if (!kernels.subtract(change.values.data() + at, change.view.data() + at, n, difference)) return false;
  }
  return true;
}

void copy_view(const Change& change) {
  if (change.moved.empty() || change.moves_view()) return;
  std::copy(change.view.begin(), change.view.end(), change.moved.begin());
}

}  // namespace isthmus::compression
