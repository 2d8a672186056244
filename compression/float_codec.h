// fp32, fp16 and bf16: every element as one float of 32 or 16 bits.
//
// Threads: immutable.
// Memory:  as dense_codec.h.
// Errors:  kCorruption for a record of the wrong size, or an fp32 one with Inf or NaN. In 16 bits every
// pattern
//          is a finite number (kernels/float16.h).

#pragma once

#include "compression/dense_codec.h"

namespace isthmus::compression {

class FloatCodec final : public DenseCodec {
 public:
  // REQUIRES: kFp32, kFp16 or kBf16.
  FloatCodec(CodecId id, const Kernels& kernels);

  CodecId id() const noexcept override { return id_; }

 private:
  std::size_t body_bytes(std::size_t elements) const noexcept override {
    return elements * (id_ == CodecId::kFp32 ? 4 : 2);
  }
  void encode_piece(std::span<const float> in, const Place& place, std::byte* out) const override;
  Status check_values(std::span<const std::byte> body, std::size_t elements) const override;
  void add(const std::byte* in, const Place& place, float weight, std::span<float> sum) const override;

  CodecId id_;
};

}  // namespace isthmus::compression
