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

// The record of parameters - view; `moved` becomes view + decoded unless it is empty (Codec::encode_delta).
// kInvalidArgument when the difference is not finite: `state` is then as it was.
Result<core::SharedBytes> encode_record(const compression::Codec& codec, compression::CodecState& state,
                                        std::span<const float> parameters, std::span<const float> view,
                                        std::span<float> moved);

// Whether it decodes to `elements` numbers.
Status check_record(std::uint8_t codec, const core::SharedBytes& record, std::size_t elements);

// values -= decoded. REQUIRES: a record that was made here, or has passed check_record().
void take_back(std::uint8_t codec, const core::SharedBytes& record, std::span<float> values);

// from + decoded, in a new array: the bits that encode_record() makes of a view, which is why an anchor and
// the view of it are the same. kCorruption also when the sum is not finite.
Result<core::VersionedFloats::Reference> moved_by(std::uint8_t codec, const core::SharedBytes& record,
                                                  std::span<const float> from);

// A Reset's values: exactly `elements` finite floats. Shares their memory when it is aligned for floats.
Result<core::VersionedFloats::Reference> read_values(const core::SharedBytes& values, std::size_t elements);

// Of the bits of an anchor; the same on every machine, different for any two that differ in one element.
std::uint64_t anchor_checksum(std::span<const float> anchor);

}  // namespace isthmus::server
