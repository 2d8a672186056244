// The blocks of a topk record, written one after another while a pass finds what to keep.
//
//   block := first:u32 bit_bytes:u16 parameter:u8 bits values
//
// A block has 256 elements, the last one what is left. What the receiver will decode is added to the view at
// once, while the elements are in the cache; undo() takes it back, bit for bit.
//
// Threads: one owner.
// Memory:  4 bytes for each element kept, where a view is moved.
// Errors:  none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/kept_values.h"
#include "compression/rice.h"

namespace isthmus::compression {

inline constexpr std::size_t kTopkBlock = kRiceBlock;
inline constexpr std::size_t kTopkBlockHeader = 7;

class TopkWriter {
 public:
  // REQUIRES: room in `out` for all that is added, at most `most` elements.
  TopkWriter(core::KeptValues values, const Kernels& kernels, std::size_t most, std::byte* out,
             std::span<float> moved)
      : values_(values), kernels_(kernels), begin_(out), to_(out), moved_(moved) {
    if (!moved.empty()) before_.reserve(most);
  }

  // REQUIRES: ascending indices.
  void add(std::uint32_t index, float value) {
    indices_[pending_] = index;
    values_in_[pending_] = value;
    if (++pending_ == kTopkBlock) write_block();
  }

  // Returns the bytes of all blocks.
  std::size_t finish();

  void undo();

 private:
  void write_block();

  core::KeptValues values_;
  const Kernels& kernels_;
  std::byte* begin_;
  std::byte* to_;
  std::span<float> moved_;
  std::vector<float> before_;  // What `moved_` held at the indices that are written.
  std::size_t pending_ = 0;
  std::uint32_t indices_[kTopkBlock];
  float values_in_[kTopkBlock];
};

}  // namespace isthmus::compression
