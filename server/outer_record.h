// A slice's numbers as the records that the `outer` protocol carries, and back.
//
// Threads: pure functions; any thread.
// Memory:  a record is one new buffer; values are borrowed from the message where they can be.
// Errors:  records and values are hostile: kProtocol or kCorruption.

#pragma once

#include <cstdint>
#include <span>

#include "compression/codec.h"
#include "core/bytes.h"
#include "core/versioned_floats.h"
#include "isthmus/status.h"

namespace isthmus::server {

// For what must lose nothing: final contributions.
const compression::Codec& lossless_codec();

// The record of `values`, which must be finite.
core::SharedBytes encode_record(const compression::Codec& codec, compression::CodecState& state,
                                std::span<const float> values);

// out[i] = decoded[i], all finite. `out` is undefined after an error.
Status decode_record(std::uint8_t codec, const core::SharedBytes& record, std::span<float> out);

// from + decoded, in a new array. kCorruption also when the sum is not finite. Region and home both move
// their copies with this one function: that is why an anchor and a view of it are the same bits.
Result<core::VersionedFloats::Reference> moved_by(std::uint8_t codec, const core::SharedBytes& record,
                                                  std::span<const float> from);

// A Reset's values: exactly `elements` finite floats. Shares their memory when it is aligned for floats.
Result<core::VersionedFloats::Reference> read_values(const core::SharedBytes& values, std::size_t elements);

// Of the bits of an anchor; the same on every machine, different for any two that differ in one element.
std::uint64_t anchor_checksum(std::span<const float> anchor);

}  // namespace isthmus::server
