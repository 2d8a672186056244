// sign: blocks of 512 elements, each the mean magnitude and one bit an element; decoded = ± mean.
//
// A bit is set for a negative element; zeros count as positive. The mean is the scale with the least error. A
// block whose mean is below the smallest normal float has scale 0.
//
// Threads: immutable.
// Memory:  as dense_codec.h.
// Errors:  kCorruption for a record of the wrong size or a scale that no encoder writes.

#pragma once

#include "compression/dense_codec.h"

namespace isthmus::compression {

class SignCodec final : public DenseCodec {
 public:
  explicit SignCodec(const Kernels& kernels) : DenseCodec(kernels) {}

  CodecId id() const noexcept override { return CodecId::kSign; }

 private:
  std::size_t body_bytes(std::size_t elements) const noexcept override;
  void encode_piece(std::span<const float> in, const Place& place, std::byte* out) const override;
  Status check_values(std::span<const std::byte> body, std::size_t elements) const override;
  void add(const std::byte* in, const Place& place, float weight, std::span<float> sum) const override;
};

}  // namespace isthmus::compression
