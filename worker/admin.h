// What `isthmus status` and `isthmus train` ask of servers, without joining the job.
//
// Threads: free functions; each call has sockets of its own and blocks until all have answered or the time
//          is up.
// Memory:  one small message an address.
// Errors:  kTimeout names the address that did not answer; kRefused with the server's text.

#pragma once

#include <span>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "proto/isthmus.pb.h"

namespace isthmus::worker {

// Of the shard that answers at `shard`.
Result<proto::StatusReply> status(const core::Address& shard, core::Duration timeout);
// Of many, asked all at once within one `timeout`. [address]
std::vector<Result<proto::StatusReply>> status(std::span<const core::Address> shards, core::Duration timeout,
                                               const proto::StatusRequest& question = {});

Status control(const core::Address& shard, proto::ControlCommand command, core::Duration timeout);
std::vector<Status> control(std::span<const core::Address> shards, proto::ControlCommand command,
                            core::Duration timeout);

}  // namespace isthmus::worker
