// What the codecs whose record has a fixed size share: every element is in it, in order.
//
// Work is done in pieces that stay in the L1 cache: the difference is taken, encoded, and what the receiver
// will decode added to the view, before the next piece is looked at.
//
// Threads: immutable.
// Memory:  allocates nothing but error messages.
// Errors:  kCorruption for a record of the wrong size or with a value that no encoder writes.

#pragma once

#include "compression/codec.h"
#include "compression/kernels/kernels.h"
#include "compression/random_numbers.h"

namespace isthmus::compression {

// record := [key:u64 record:u64] body; what is in brackets only where decoding needs random numbers.
class DenseCodec : public Codec {
 public:
  explicit DenseCodec(const Kernels& kernels, bool has_key = false)
      : kernels_(kernels), header_bytes_(has_key ? RandomNumbers::kBytes : 0) {}

  std::size_t max_encoded_bytes(std::size_t elements) const noexcept final {
    return header_bytes_ + body_bytes(elements);
  }
  Status check(std::span<const std::byte> in, std::size_t elements) const final;
  Status accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const final;
  Status decode(std::span<const std::byte> in, std::span<float> out) const final;

 protected:
  // A multiple of every block: the bodies of pieces, one after another, are the body of the whole.
  static constexpr std::size_t kPiece = 2048;

  // A piece as a part of a whole.
  struct Place {
    std::size_t first;      // Element.
    RandomNumbers numbers;  // The record's.
  };

  const Kernels& kernels() const { return kernels_; }

  // 16 random bits for each of a piece's `n` elements: block b of the use kRounding has those of elements
  // 8 b to 8 b + 7, the low half of a word before the high one.
  void draw_rounding(std::size_t n, const Place& place, std::uint16_t (&random)[kPiece]) const;

 private:
  virtual std::size_t body_bytes(std::size_t elements) const noexcept = 0;
  // At most kPiece elements to `out`.
  virtual void encode_piece(std::span<const float> in, const Place& place, std::byte* out) const = 0;
  // Whether every value is one that an encoder writes. `body` has the right size.
  virtual Status check_values(std::span<const std::byte> body, std::size_t elements) const = 0;
  // Any number of elements, from a piece's start.
  virtual void add(const std::byte* in, const Place& place, float weight, std::span<float> sum) const = 0;

  Result<std::size_t> encode_change(const Change& change, CodecState& state,
                                    std::span<std::byte> out) const final;
  RandomNumbers numbers_in(std::span<const std::byte> in) const;

  const Kernels& kernels_;
  std::size_t header_bytes_;
};

}  // namespace isthmus::compression
