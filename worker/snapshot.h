// A consistent copy of all tensors: which question the shards are asked, and asked again until all of them
// answer for the same round.
//
// Threads: pure but for `ask`, which may block.
// Memory:  the encoded answers of all shards, while they are decoded.
// Errors:  what `ask` gives; kProtocol and kCorruption for answers that do not fit; kUnavailable when rounds
//          pass faster than they can be asked for.

#pragma once

#include <functional>
#include <span>
#include <vector>

#include "isthmus/client.h"
#include "isthmus/status.h"
#include "proto/meta.h"
#include "worker/shards.h"

namespace isthmus::worker {

// Puts one question to every shard; gives their kSnapshotReply messages. [shard]
using AskShards = std::function<Result<std::vector<proto::Message>>(const proto::Snapshot&)>;

// Fills the views and, if given, *step: the region's clock.
Status read_snapshot(Snapshot which, const ShardedLayout& layout, std::span<const Parameters> parameters,
                     const AskShards& ask, Step* step);

}  // namespace isthmus::worker
