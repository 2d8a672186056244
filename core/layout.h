// The job's tensors and how they are cut into slices: what all regions must agree on.
//
// Threads: immutable after create().
// Memory:  O(tensors + slices).
// Errors:  create() gives kInvalidArgument for a table that cannot be trained.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::core {

// The position in Layout::slices(). [0, slices)
using SliceId = std::uint32_t;

// A contiguous range of one tensor: the unit of versions, messages, compression and WAN sync.
struct Slice {
  SliceId id = 0;
  TensorId tensor;
  std::uint64_t offset = 0;    // Elements from the tensor's start.
  std::uint64_t elements = 0;  // At least 1.
  bool operator==(const Slice&) const = default;
};

class Layout {
 public:
  // Limits on what a peer may declare; far above real models, far below what could hurt.
  static constexpr std::size_t kMaxTensors = 1 << 16;
  static constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 40;

  // Names must be unique and 1 to 255 bytes, dimensions at least 1, slices at most 2^20.
  static Result<Layout> create(std::vector<TensorSpec> tensors, std::uint64_t slice_elements);

  std::span<const TensorSpec> tensors() const noexcept { return tensors_; }
  std::span<const Slice> slices() const noexcept { return slices_; }
  // The slices of one tensor, in order. REQUIRES: tensor.value < tensors().size().
  std::span<const Slice> slices_of(TensorId tensor) const noexcept;
  std::uint64_t elements() const noexcept { return elements_; }
  std::uint64_t slice_elements() const noexcept { return slice_elements_; }
  // The same for the same tensors and slices, on every machine.
  std::uint64_t hash() const noexcept { return hash_; }

  // "" when equal; else the first difference, in words: "tensor 2 is 'fc1' 256x784 here and 'fc1' 128x784
  // there".
  static std::string difference(const Layout& here, const Layout& there);

 private:
  Layout() = default;
  std::vector<TensorSpec> tensors_;
  std::vector<Slice> slices_;
  std::vector<std::size_t> first_slice_;  // Of each tensor; one more at the end.
  std::uint64_t elements_ = 0;
  std::uint64_t slice_elements_ = 0;
  std::uint64_t hash_ = 0;
};

// Which of `shards` owns each slice: heaviest first onto the lightest shard, so that shards hold about as
// many elements each. Private to a region; all its processes compute the same. [slice] -> [0, shards)
std::vector<std::uint32_t> assign_shards(const Layout& layout, std::uint32_t shards);

// Which region is home to each slice: elements in proportion to `weights` (one a region, at least one > 0).
// All regions compute the same. [slice] -> [0, weights.size())
std::vector<std::uint32_t> assign_homes(const Layout& layout, std::span<const double> weights);

}  // namespace isthmus::core
