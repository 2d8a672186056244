// The `outer` protocol's values as frames, and back.
//
// Threads: pure functions.  Memory: records are shared.  Errors: kProtocol for what a peer got wrong.

#pragma once

#include "core/layout.h"
#include "isthmus/status.h"
#include "proto/frame.h"
#include "server/outer_messages.h"

namespace isthmus::server {

// `clock`: the sender's region's; rides on every message.
proto::Message to_message(core::SliceId slice, const Contribution& contribution, Step clock);
proto::Message to_message(core::SliceId slice, const GlobalDelta& delta, std::uint32_t receiver, Step clock);
proto::Message to_message(core::SliceId slice, const Reset& reset, std::uint32_t receiver, Step clock);
proto::Message to_message(core::SliceId slice, const GlobalDeltaAck& ack);
proto::Message reset_request(core::SliceId slice, const GlobalDeltaAck& have, const std::string& why);

// `clock` is set to the sender's.
Result<Contribution> to_contribution(const proto::Message& message, Step& clock);
Result<GlobalDelta> to_global_delta(const proto::Message& message, Step& clock);
Result<Reset> to_reset(const proto::Message& message, Step& clock);
Result<GlobalDeltaAck> to_ack(const proto::Message& message);  // Of a kResetRequest too: what it has.

}  // namespace isthmus::server
