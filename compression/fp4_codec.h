// fp4: blocks of 64 elements, each a bf16 scale and 4 bits an element: a sign and a power of two, or zero;
// decoded = ± scale * 2^(code - 7), code 1 to 7, and 0 for code 0.
//
// The scale is the block's largest magnitude as bf16. Small elements keep their relative precision, which
// suits heavy tails; int4 is better where values are of one size. kernels/blocks.h says what becomes of zeros
// and of float's extremes.
//
// Threads: immutable.
// Memory:  as dense_codec.h.
// Errors:  kCorruption for a record of the wrong size or a scale that no encoder writes.

#pragma once

#include "compression/dense_codec.h"

namespace isthmus::compression {

class Fp4Codec final : public DenseCodec {
 public:
  explicit Fp4Codec(const Kernels& kernels) : DenseCodec(kernels) {}

  CodecId id() const noexcept override { return CodecId::kFp4; }

 private:
  std::size_t body_bytes(std::size_t elements) const noexcept override;
  void encode_piece(std::span<const float> in, const Place& place, std::byte* out) const override;
  Status check_values(std::span<const std::byte> body, std::size_t elements) const override;
  void add(const std::byte* in, const Place& place, float weight, std::span<float> sum) const override;
};

}  // namespace isthmus::compression
