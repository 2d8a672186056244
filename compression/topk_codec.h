// topk: the largest elements only, as index and fp16 value; the rest stays with the sender.
//
// k = round(keep * elements), at least 1. One pass takes what reaches a threshold meant to let k and an
// eighth pass; of those the k largest are kept exactly, the lower index first among equals. The threshold
// comes from the state or, when there is none or it lets too few pass, from a sample of the slice. So a
// record has k elements, or down to 0.9 k when the threshold was a little high, or fewer when fewer are worth
// sending: an element whose fp16 value is zero is never sent.
//
// Threads: immutable.
// Memory:  encode() allocates scratch of some 16 bytes for each element kept.
// Errors:  kCorruption for a record of the wrong size, indices that do not ascend or are out of range, values
//          that are not finite.

#pragma once

#include <vector>

#include "compression/codec.h"
#include "compression/kernels/kernels.h"

namespace isthmus::compression {

class TopkCodec final : public Codec {
 public:
  // REQUIRES: 0 < keep <= 1. Decoding does not depend on it.
  TopkCodec(double keep, const Kernels& kernels) : keep_(keep), kernels_(kernels) {}

  CodecId id() const noexcept override { return CodecId::kTopk; }
  std::size_t max_encoded_bytes(std::size_t elements) const noexcept override;
  std::size_t encode(std::span<const float> in, CodecState& state, std::span<std::byte> out) const override;
  Status accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const override;
  Status decode(std::span<const std::byte> in, std::span<float> out) const override;

 private:
  std::size_t wanted(std::size_t elements) const noexcept;
  // The indices of all elements that reach `threshold`, ascending.
  std::vector<std::uint32_t> select(std::span<const float> in, float threshold) const;
  std::vector<std::uint32_t> candidates(std::span<const float> in, float& threshold) const;
  Status check(std::span<const std::byte> in, std::size_t elements) const;

  double keep_;
  const Kernels& kernels_;
};

}  // namespace isthmus::compression
