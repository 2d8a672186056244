// int4: blocks of 64 elements, each a bf16 scale and 4 bits an element, -7 to 7; decoded = code * scale.
//
// The scale is the block's largest magnitude / 7, rounded up to bf16: float's whole range in 16 bits, and no
// element is clipped. kernels/blocks.h says what becomes of zeros and of float's extremes.
//
// Rotated, each 1024 elements are first given random signs and mixed by a Walsh-Hadamard transform (of length
// 1), and mixed back after decoding: an element that stands out of its block becomes a little of every
// element, and the error does not depend on how the values are distributed. The signs are the record's own.
// What is left of a slice after its last 1024 elements is not rotated. Elements beyond 2^117, which would
// overflow in the sum, are taken for that.
//
// Threads: immutable.
// Memory:  as dense_codec.h.
// Errors:  kCorruption for a record of the wrong size or a scale that no encoder writes.

#pragma once

#include "compression/dense_codec.h"

namespace isthmus::compression {

class Int4Codec final : public DenseCodec {
 public:
  explicit Int4Codec(const Kernels& kernels, bool rotate = false,
                     core::Rounding rounding = core::Rounding::kNearest)
      : DenseCodec(kernels, rotate), rotate_(rotate), rounding_(rounding) {}

  CodecId id() const noexcept override { return rotate_ ? CodecId::kRotatedInt4 : CodecId::kInt4; }

 private:
  std::size_t body_bytes(std::size_t elements) const noexcept override;
  void encode_piece(std::span<const float> in, const Place& place, std::byte* out) const override;
  Status check_values(std::span<const std::byte> body, std::size_t elements) const override;
  void add(const std::byte* in, const Place& place, float weight, std::span<float> sum) const override;

  bool rotate_;
  core::Rounding rounding_;
};

// What int4 and fp4 share: the size of a body, and whether an encoder writes its scales.
std::size_t nibble_body_bytes(std::size_t elements) noexcept;
Status check_nibble_scales(std::span<const std::byte> body, std::size_t elements);

}  // namespace isthmus::compression
