// Numbers into fewer bytes, and back.
//
// An encoding is self-contained: the record plus the number of elements decodes it.
// Records are little-endian; their grammar is docs/compression.md.
//
// Error feedback needs no residual: who sends keeps a view of what the receiver holds, sends the encoded
// difference to it (encode_delta), and both apply the same bytes. What the codec lost is in the next
// difference.
//
// Threads: a Codec is immutable; share it freely. A CodecState belongs to one caller.
// Memory:  never allocates what it can avoid; the caller gives `out` of max_encoded_bytes().
// Errors:  encode() cannot fail but must not be asked to encode NaN or Inf (see all_finite); encode_delta()
//          looks itself; decoding treats `in` as hostile and gives kCorruption.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "compression/change.h"
#include "core/job_config.h"
#include "isthmus/status.h"

namespace isthmus::compression {

// On the wire; frozen.
enum class CodecId : std::uint8_t {
  kFp32 = 1,
  kFp16 = 2,
  kBf16 = 3,
  kInt8 = 4,
  kTopk = 5,
  kInt4 = 6,
  kRotatedInt4 = 7,
  kFp4 = 8,
  kSign = 9,
  kRandk = 10,
};

// What an encoder remembers from one call to the next about one slice. Any value is valid, zero-initialised
// is the start.
struct CodecState {
  // topk: the threshold to try next, already corrected by how many elements the last one let pass. One that
  // does not fit costs further passes.
  float threshold = 0.0f;
  // Codecs that draw random numbers take those of (key, records), which no two records should share: give
  // each slice of each process's life a key of its own. The record says what it was made with.
  std::uint64_t key = 0;
  std::uint64_t records = 0;  // Made so far.
};

class Codec {
 public:
  virtual ~Codec() = default;
  virtual CodecId id() const noexcept = 0;
  virtual std::size_t max_encoded_bytes(std::size_t elements) const noexcept = 0;

  // Writes the record of `in` to `out`; returns its bytes. REQUIRES: out.size() >= max_encoded_bytes.
  std::size_t encode(std::span<const float> in, CodecState& state, std::span<std::byte> out) const;

  // Writes the record of parameters - view and sets moved[i] = view[i] + decoded[i], the bits that
  // accumulate() with weight 1 makes of `view`. `moved` may be `view` itself, or another array, or empty.
  // kInvalidArgument when a difference is not finite: `view` and `state` are then as they were, `out` and
  // another `moved` are not. REQUIRES: equal sizes (but for an empty `moved`), out.size() >=
  // max_encoded_bytes.
  //
  // One pass over memory, where no scale or threshold must be known first. To move `view` itself, a codec
  // that changes all elements looks for NaN and Inf in a pass before; a sparse one undoes what it has
  // changed.
  Result<std::size_t> encode_delta(std::span<const float> parameters, std::span<const float> view,
                                   std::span<float> moved, CodecState& state, std::span<std::byte> out) const;

  // Whether accumulate() to as many elements would take the record.
  virtual Status check(std::span<const std::byte> in, std::size_t elements) const = 0;

  // sum[i] += weight * decoded[i], in one pass. The whole record is checked first: a refused one leaves `sum`
  // as it was. A sparse record touches only the elements it names. REQUIRES: finite weight.
  virtual Status accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const = 0;

  // out[i] = decoded[i], all of them: the bits that accumulate() with weight 1 makes of zeros. So a zero
  // decodes without its sign.
  virtual Status decode(std::span<const std::byte> in, std::span<float> out) const = 0;

 private:
  // encode(), where there is no view, and encode_delta(). Only a difference is looked at whether it is
  // finite.
  virtual Result<std::size_t> encode_change(const Change& change, CodecState& state,
                                            std::span<std::byte> out) const = 0;
};

// The codec of a config entry, for encoding.
std::unique_ptr<const Codec> make_codec(const core::CodecConfig& config);

// The same on one backend.
std::unique_ptr<const Codec> make_codec(const core::CodecConfig& config, const Kernels& kernels);

// A codec for decoding records of `id`; kProtocol for an unknown id. Lives for ever.
Result<const Codec*> find_decoder(std::uint8_t id);

// False when any element is NaN or Inf. One pass.
bool all_finite(std::span<const float> in) noexcept;

// What a codec answers to a difference that is not.
Status not_finite();

}  // namespace isthmus::compression
