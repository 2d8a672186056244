// topk: the largest elements only, as Rice-coded index and value; the rest stays with the sender.
//
// k = round(keep * elements), at least 1. A pass keeps everything that reaches a threshold; from 0.9 k to 1.1
// k elements are good enough. The threshold comes from the state, or from a sample of the slice. When it does
// not fit, it is corrected and tried once more, and then the k largest are found by counting, the lower index
// first among equals. Fewer are kept only where fewer are worth sending: an element whose value would be
// encoded as zero never is.
//
// Threads: immutable.
// Memory:  encode_delta() that moves a view allocates 4 bytes for each element kept, a sample 256 KiB;
// decoding 4
//          bytes for each element of the record.
// Errors:  kCorruption for a record of the wrong size, indices that do not ascend or are out of range, bits
// that no
//          encoder writes, values that are not finite.

#pragma once

#include <vector>

#include "compression/codec.h"
#include "compression/kept_values.h"
#include "compression/kernels/kernels.h"
#include "compression/threshold.h"
#include "compression/topk_pass.h"

namespace isthmus::compression {

// record := kind:u8 count:u32 block × ⌈count / 256⌉
inline constexpr std::size_t kTopkHeaderBytes = 5;

// What a slice of so many elements is to keep.
TopkTarget topk_target(double keep, core::KeptValues values, std::size_t elements) noexcept;

class TopkCodec final : public Codec {
 public:
  // REQUIRES: 0 < keep <= 1. Decoding depends on neither.
  TopkCodec(double keep, core::KeptValues values, const Kernels& kernels)
      : keep_(keep), values_(values), kernels_(kernels) {}

  CodecId id() const noexcept override { return CodecId::kTopk; }
  std::size_t max_encoded_bytes(std::size_t elements) const noexcept override;
  Status check(std::span<const std::byte> in, std::size_t elements) const override;
  Status accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const override;
  Status decode(std::span<const std::byte> in, std::span<float> out) const override;

 private:
  struct Written;

  Result<std::size_t> encode_change(const Change& change, CodecState& state,
                                    std::span<std::byte> out) const override;
  TopkTarget target(std::size_t elements) const noexcept { return topk_target(keep_, values_, elements); }
  Written by_threshold(const Change& change, const CodecState& state, std::span<std::byte> out) const;
  Written by_counting(const Change& change, std::span<std::byte> out) const;
  // Writes all that a cut keeps; without a trace when those are too many or, for want of a lower threshold,
  // too few.
  Written run(const Change& change, const Cut& cut, std::span<std::byte> out) const;
  // Checks a record whole; its indices.
  Result<std::vector<std::uint32_t>> read(std::span<const std::byte> in, std::size_t elements) const;

  double keep_;
  core::KeptValues values_;
  const Kernels& kernels_;
};

}  // namespace isthmus::compression
