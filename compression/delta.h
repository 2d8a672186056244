// What has changed and not been told yet, encoded.
//
// Error feedback without a residual: the caller sends the bytes, and both sides apply them with
// Codec::accumulate() to their copy of what the receiver holds. What the codec lost is in the next
// difference.
//
// Threads: any, with buffers and state of its own.
// Memory:  the caller's buffers; a codec may use scratch.
// Errors:  kInvalidArgument for a difference that is not finite.

#pragma once

#include "compression/codec.h"

namespace isthmus::compression {

// Encodes a - b, or (a - b) - c when `c` is not empty, and returns the record's bytes in `out`. `decoded` is
// what the receiver will decode. On an error `out` and `state` are as they were; `decoded` is not.
// REQUIRES: spans of equal size, not overlapping `decoded`; out.size() >= codec.max_encoded_bytes(a.size()).
Result<std::size_t> encode_delta(std::span<const float> a, std::span<const float> b, std::span<const float> c,
                                 const Codec& codec, CodecState& state, std::span<float> decoded,
                                 std::span<std::byte> out);

}  // namespace isthmus::compression
