// min, max and clamp by value. The standard's take references, and device code that refers to a constant of
// the host does not do what it says.
//
// Threads: any.  Memory: none.  Errors: none.

#pragma once

namespace isthmus::compression {

template <typename T>
constexpr T smaller(T a, T b) noexcept {
  return b < a ? b : a;
}

template <typename T>
constexpr T larger(T a, T b) noexcept {
  return a < b ? b : a;
}

template <typename T>
constexpr T limited(T value, T least, T most) noexcept {
  return value < least ? least : most < value ? most : value;
}

}  // namespace isthmus::compression
