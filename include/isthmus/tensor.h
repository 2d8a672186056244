// What is trained: named tensors, and views of the memory that holds their values.
//
// Threads: values.
// Memory:  a view never owns; it must not outlive what it shows.
// Errors:  none.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace isthmus {

// The position of a tensor in the table that all parties declare. [0, tensors)
struct TensorId {
  std::uint32_t value = 0;
  auto operator<=>(const TensorId&) const = default;
};

// A worker's count of finished steps.
using Step = std::uint64_t;

// Values are 32-bit IEEE floats, little-endian.
struct TensorSpec {
  std::string name;                  // Unique in a job, 1 to 255 bytes.
  std::vector<std::uint64_t> shape;  // Each dimension at least 1; empty is a scalar.

  std::uint64_t elements() const noexcept {
    return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  }
  bool operator==(const TensorSpec&) const = default;
};

using ConstTensorView = std::span<const float>;
using TensorView = std::span<float>;

}  // namespace isthmus
