// Protobuf metas in and out of Messages, and records out of their payloads.
//
// Threads: pure functions.
// Memory:  what protobuf needs for a meta; records are views that share the payload's owner.
// Errors:  kProtocol for a meta that does not parse or records that do not fill the payload exactly.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/layout.h"
#include "isthmus/status.h"
#include "proto/frame.h"
#include "proto/isthmus.pb.h"

namespace isthmus::proto {

template <typename Meta>
Message make_message(Kind kind, std::uint64_t request_id, const Meta& meta) {
  return {kind, request_id, meta.SerializeAsString(), {}};
}

// REQUIRES nothing of the bytes: hostile ones give kProtocol.
template <typename Meta>
Result<Meta> parse_meta(const Message& message) {
  Meta meta;
  if (!meta.ParseFromString(message.meta))
    return Status(ErrorCode::kProtocol, std::string(to_string(message.kind)) + ": malformed meta");
  return meta;
}

// The bytes of each record, in order. kProtocol unless `record_bytes` fill the payload's pieces exactly.
Result<std::vector<core::SharedBytes>> split_records(const Message& message,
                                                     std::span<const std::uint64_t> record_bytes);

// A piece costs both ends some microseconds, however small: smaller ones than kBigPieceBytes that follow one
// another travel in pieces of at most kJoinedBytes.
inline constexpr std::size_t kBigPieceBytes = 64 << 10;
inline constexpr std::size_t kJoinedBytes = 1 << 20;
// Copies them together; big pieces stay as they are. The records stay the same.
std::vector<core::SharedBytes> join_small(std::vector<core::SharedBytes> pieces);

Message make_refusal(std::uint64_t request_id, RefuseReason reason, std::string text);
// The Status that a kRefuse message stands for: kRefused with its text.
Status refusal_status(const Message& message);

LayoutTable to_table(const core::Layout& layout);
// Checked as hostile.
Result<core::Layout> from_table(const LayoutTable& table);

}  // namespace isthmus::proto
