// Numbers into fewer bytes, and back.
//
// An encoding is self-contained: the record plus the number of elements decodes it.
// Records are little-endian; their grammar is docs/compression.md.
//
// Threads: a Codec is immutable; share it freely. A CodecState belongs to one caller.
// Memory:  never allocates what it can avoid; the caller gives `out` of max_encoded_bytes().
// Errors:  encoding cannot fail but must not be asked to encode NaN or Inf (see all_finite);
//          decoding treats `in` as hostile and gives kCorruption.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/job_config.h"
#include "isthmus/status.h"

namespace isthmus::compression {

// On the wire; frozen.
enum class CodecId : std::uint8_t { kFp32 = 1, kFp16 = 2, kBf16 = 3, kInt8 = 4, kTopk = 5 };

struct Kernels;

// What a sparse codec learns from one call to the next about one slice: the threshold to try next, already
// corrected by how many elements the last one kept. Dense codecs ignore it. Any value is valid: one that does
// not fit costs a second pass. Zero-initialised is the start.
struct CodecState {
  float threshold = 0.0f;
};

class Codec {
 public:
  virtual ~Codec() = default;
  virtual CodecId id() const noexcept = 0;
  virtual std::size_t max_encoded_bytes(std::size_t elements) const noexcept = 0;

  // Writes the record of `in` to `out`; returns its bytes. REQUIRES: out.size() >= max_encoded_bytes.
  virtual std::size_t encode(std::span<const float> in, CodecState& state,
                             std::span<std::byte> out) const = 0;

  // sum[i] += weight * decoded[i], in one pass. The whole record is checked first: a refused one leaves `sum`
  // as it was. A sparse record touches only the elements it names. REQUIRES: finite weight.
  virtual Status accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const = 0;

  // out[i] = decoded[i], all of them: the bits that accumulate() with weight 1 makes of zeros. So a zero
  // decodes without its sign.
  virtual Status decode(std::span<const std::byte> in, std::span<float> out) const = 0;
};

// The codec of a config entry, for encoding.
std::unique_ptr<const Codec> make_codec(const core::CodecConfig& config);

// The same on one backend.
std::unique_ptr<const Codec> make_codec(const core::CodecConfig& config, const Kernels& kernels);

// A codec for decoding records of `id`; kProtocol for an unknown id. Lives for ever.
Result<const Codec*> find_decoder(std::uint8_t id);

// False when any element is NaN or Inf. One pass.
bool all_finite(std::span<const float> in) noexcept;

}  // namespace isthmus::compression
