// int8: blocks of 256 elements, each a scale and one signed byte an element; decoded = code * scale.
//
// The scale is the block's largest magnitude / 127, so no element is clipped. To nearest, the error of each
// is at most half a scale; stochastic, it is up to a whole one and zero in the mean. kernels/blocks.h says
// what becomes of zeros and of float's extremes.
//
// Threads: immutable.
// Memory:  as dense_codec.h.
// Errors:  kCorruption for a record of the wrong size or a scale that no encoder writes.

#pragma once

#include "compression/dense_codec.h"

namespace isthmus::compression {

class Int8Codec final : public DenseCodec {
 public:
  explicit Int8Codec(const Kernels& kernels, core::Rounding rounding = core::Rounding::kNearest)
      : DenseCodec(kernels), rounding_(rounding) {}

  CodecId id() const noexcept override { return CodecId::kInt8; }

 private:
  std::size_t body_bytes(std::size_t elements) const noexcept override;
  void encode_piece(std::span<const float> in, const Place& place, std::byte* out) const override;
  Status check_values(std::span<const std::byte> body, std::size_t elements) const override;
  void add(const std::byte* in, const Place& place, float weight, std::span<float> sum) const override;

  core::Rounding rounding_;
};

// Whether an encoder writes such a scale of an int8 block.
bool is_int8_scale(const std::byte* in) noexcept;

}  // namespace isthmus::compression
