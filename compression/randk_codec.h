// randk: elements at random places, which both sides compute: no indices travel.
//
// k = round(keep * elements), at least 1. The slice is cut into k strata of equal length (but for rounding),
// and one place of each is kept, each as likely: so places ascend, none comes twice, and every element is
// kept as often as any other. Values are not scaled up by 1 / keep: what is not sent stays with the sender.
//
// The places are a function of the record's own random numbers, other ones in every record.
//
// Threads: immutable.
// Memory:  none allocated.
// Errors:  kCorruption for a record of the wrong size, too many values, or values that are not finite.

#pragma once

#include "compression/codec.h"
#include "compression/kept_values.h"
#include "compression/kernels/kernels.h"
#include "compression/random_numbers.h"

namespace isthmus::compression {

// record := key:u64 record:u64 kind:u8 count:u32 values
inline constexpr std::size_t kRandkKindAt = RandomNumbers::kBytes;
inline constexpr std::size_t kRandkHeaderBytes = kRandkKindAt + 5;

class RandkCodec final : public Codec {
 public:
  // REQUIRES: 0 < keep <= 1. Decoding depends on neither.
  RandkCodec(double keep, core::KeptValues values, const Kernels& kernels)
      : keep_(keep), values_(values), kernels_(kernels) {}

  CodecId id() const noexcept override { return CodecId::kRandk; }
  std::size_t max_encoded_bytes(std::size_t elements) const noexcept override;
  Status check(std::span<const std::byte> in, std::size_t elements) const override;
  Status accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const override;
  Status decode(std::span<const std::byte> in, std::span<float> out) const override;

 private:
  struct Record;

  Result<std::size_t> encode_change(const Change& change, CodecState& state,
                                    std::span<std::byte> out) const override;
  Result<Record> read(std::span<const std::byte> in, std::size_t elements) const;
  void add(const Record& record, float weight, std::span<float> sum) const;

  double keep_;
  core::KeptValues values_;
  const Kernels& kernels_;
};

}  // namespace isthmus::compression
