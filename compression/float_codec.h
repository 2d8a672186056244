// fp32, fp16 and bf16: every element as one float of 32 or 16 bits.
//
// Threads: immutable.
// Memory:  as dense_codec.h.
// Errors:  kCorruption for a record of the wrong size, or with Inf or NaN.

#pragma once

#include "compression/dense_codec.h"

namespace isthmus::compression {

class FloatCodec final : public DenseCodec {
 public:
  // REQUIRES: kFp32, kFp16 or kBf16.
  FloatCodec(CodecId id, const Kernels& kernels);

  CodecId id() const noexcept override { return id_; }
  std::size_t max_encoded_bytes(std::size_t elements) const noexcept override { return elements * width_; }
  std::size_t encode(std::span<const float> in, CodecState& state, std::span<std::byte> out) const override;

 private:
  Status check_values(std::span<const std::byte> in, std::size_t elements) const override;
  void add(std::span<const std::byte> in, float weight, std::span<float> sum) const override;

  CodecId id_;
  std::size_t width_;  // Bytes an element.
  bool (*finite_)(const std::byte* in, std::size_t n);
  void (*add_)(const std::byte* in, std::size_t n, float weight, float* sum);
};

}  // namespace isthmus::compression
