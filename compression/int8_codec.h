// int8: blocks of 256 elements, each a scale and one signed byte an element; decoded = code * scale.
//
// The scale is the block's largest magnitude / 127, so no element is clipped and the error of each is at most
// half a scale. A block of zeros has scale 0. Other scales are kept normal and small enough for every
// code * scale to be finite: a block of tiny values then rounds to a coarser grid, one at the very top of
// float's range loses up to 1/128, and what is lost stays with the sender like any other error.
//
// Threads: immutable.
// Memory:  as dense_codec.h.
// Errors:  kCorruption for a record of the wrong size or a scale that no encoder writes.

#pragma once

#include "compression/dense_codec.h"

namespace isthmus::compression {

class Int8Codec final : public DenseCodec {
 public:
  using DenseCodec::DenseCodec;

  CodecId id() const noexcept override { return CodecId::kInt8; }
  std::size_t max_encoded_bytes(std::size_t elements) const noexcept override;
  std::size_t encode(std::span<const float> in, CodecState& state, std::span<std::byte> out) const override;

 private:
  Status check_values(std::span<const std::byte> in, std::size_t elements) const override;
  void add(std::span<const std::byte> in, float weight, std::span<float> sum) const override;
};

}  // namespace isthmus::compression
