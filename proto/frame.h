// The 32 bytes in front of everything that Isthmus sends, on ZeroMQ and on WAN streams alike.
//
//   frame := header meta payload
//   header, little-endian: magic u32 | version u8 | kind u8 | flags u16 | meta_bytes u32 | crc32c u32 |
//                          payload_bytes u64 | request_id u64
//
// crc32c covers the header (with its own field as 0) and the meta. The payload is covered by TLS between
// regions; within a region by TCP's checksum.
//
// Threads: pure functions.
// Memory:  decode_header() allocates nothing: lengths are checked before anybody does.
// Errors:  hostile bytes give kProtocol (not ours, wrong version, unknown kind or flag, over a limit) or
//          kCorruption (checksum).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "isthmus/status.h"

namespace isthmus::proto {

inline constexpr std::uint32_t kMagic = 0x4D485349;  // "ISHM"
inline constexpr std::uint8_t kWireVersion = 1;
inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::uint32_t kMaxMetaBytes = 16u << 20;

// Frozen numbers.
enum class Kind : std::uint8_t {
  // LAN
  kHello = 1,
  kWelcome = 2,
  kRefuse = 3,
  kInitialize = 4,
  kInitializeReply = 5,
  kPushPull = 6,
  kPushPullReply = 7,
  kNextStep = 8,
  kNextStepReply = 9,
  kHeartbeat = 10,
  kLeave = 11,
  kLeaveReply = 12,
  kSnapshot = 13,
  kSnapshotReply = 14,
  kStatus = 15,
  kStatusReply = 16,
  kControl = 17,
  kControlReply = 18,
  // WAN
  kLinkHello = 32,
  kLinkWelcome = 33,
  kLinkHeartbeat = 34,
  kContribution = 35,
  kGlobalDelta = 36,
  kGlobalDeltaAck = 37,
  kResetRequest = 38,
  kReset = 39,
};
bool is_known(Kind kind) noexcept;
std::string_view to_string(Kind kind) noexcept;

struct Header {
  Kind kind = Kind::kHeartbeat;
  std::uint16_t flags = 0;  // None is defined yet; an unknown one is refused.
  std::uint32_t meta_bytes = 0;
  std::uint32_t crc32c = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t request_id = 0;  // LAN: the asker's, echoed in the reply. WAN: the slice.
  bool operator==(const Header&) const = default;
};

// One frame, ready to be sent or as received. The payload may lie in several pieces; a record (see
// isthmus.proto) never straddles two of them.
struct Message {
  Kind kind = Kind::kHeartbeat;
  std::uint64_t request_id = 0;
  std::string meta;  // A serialized protobuf message.
  std::vector<core::SharedBytes> payload;

  std::uint64_t payload_bytes() const noexcept;
};

// The header of `message`, checksum included. REQUIRES: meta of at most kMaxMetaBytes.
std::array<std::byte, kHeaderBytes> encode_header(const Message& message);

// Checks everything but the checksum, against the limit too. `bytes` has at least kHeaderBytes.
Result<Header> decode_header(std::span<const std::byte> bytes, std::uint64_t max_payload_bytes);

// kCorruption unless header (as received, kHeaderBytes) and meta match the checksum inside.
Status check_meta(std::span<const std::byte> header, std::string_view meta);

// Castagnoli. Starts at 0.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace isthmus::proto
