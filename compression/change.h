// What an encoder reads and moves: numbers, or the difference of numbers from a view of them.
//
// Threads: a value.
// Memory:  views of the caller's arrays.
// Errors:  none.

#pragma once

#include <cstddef>
#include <span>

#include "compression/kernels/kernels.h"

namespace isthmus::compression {

struct Change {
  std::span<const float> values;
  std::span<const float> view{};  // What the receiver holds of them; empty: zeros.
  std::span<float> moved{};       // Becomes view + decoded; empty: nobody asks. May be `view` itself.

  std::size_t size() const noexcept { return values.size(); }
  bool is_difference() const noexcept { return !view.empty(); }
  bool moves_view() const noexcept { return !moved.empty() && moved.data() == view.data(); }

  // values[i] - view[i]
  float at(std::size_t i) const noexcept { return is_difference() ? values[i] - view[i] : values[i]; }
};

// Whether all differences are. REQUIRES: is_difference().
bool is_finite(const Change& change, const Kernels& kernels);

// view -> moved, where they are two arrays.
void copy_view(const Change& change);

}  // namespace isthmus::compression
