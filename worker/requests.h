// A caller's gradients and views as messages to the shards.
//
// Big slices lie in a piece of their own, small ones together, so that a thousand biases are one piece. A
// shard's share is cut into messages of about 1 MiB, but not more than about 64. What holds NaN or Inf
// travels as fp32 whatever the codec, so that the shard sees it and can refuse it.
//
// Threads: pure functions.
// Memory:  one encoded copy of what is pushed; none of big fp32 slices whose gradient has an owner.
// Errors:  kInvalidArgument for a tensor that is unknown, named twice or of another size.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compression/codec.h"
#include "isthmus/client.h"
#include "isthmus/status.h"
#include "worker/deep_compression.h"
#include "worker/operation.h"
#include "worker/shards.h"

namespace isthmus::worker {

// kPushPull. A slice is pushed and pulled in one part. Shards that hold nothing of it get no part. `draws`:
// where a codec that draws random numbers takes them from, of the step `draws.records`; each slice has its
// own of them. `deep` gathers gradients and sends their largest instead, unless one is not finite: then only
// that goes, as it is, for the shard to refuse. `clip`: how long what is pushed may be.
Result<std::vector<Part>> make_push_pull(const ShardedLayout& layout, const compression::Codec& codec,
                                         std::span<const Gradient> gradients, std::uint64_t samples,
                                         std::span<const Parameters> parameters,
                                         const compression::CodecState& draws = {},
                                         DeepCompression* deep = nullptr, const ClipConfig& clip = {});

// kInitialize: all tensors, fp32, by ascending slice, a part for every shard.
Result<std::vector<Part>> make_initialize(const ShardedLayout& layout, std::span<const Gradient> initial);

// The same meta for every shard.
std::vector<Part> make_parts(std::uint32_t shards, const std::string& meta = {});

}  // namespace isthmus::worker
