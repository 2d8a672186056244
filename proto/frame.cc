#include "proto/frame.h"

#include <bit>
#include <boost/crc.hpp>
#include <cstring>
#include <numeric>

#include "core/check.h"

namespace isthmus::proto {
namespace {

constexpr std::size_t kCrcOffset = 12;

template <typename T>
void put(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

template <typename T>
T get(const std::byte* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(from[i]) << (8 * i));
  return value;
}

std::uint32_t header_crc(std::span<const std::byte> header, std::string_view meta) {
  std::array<std::byte, kHeaderBytes> zeroed;
  std::memcpy(zeroed.data(), header.data(), kHeaderBytes);
  put<std::uint32_t>(zeroed.data() + kCrcOffset, 0);
  return crc32c(std::as_bytes(std::span(meta)), crc32c(zeroed));
}

Status protocol_error(std::string what) { return {ErrorCode::kProtocol, std::move(what)}; }

}  // namespace

bool is_known(Kind kind) noexcept { return to_string(kind) != "unknown"; }

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::kHello: return "hello";
    case Kind::kWelcome: return "welcome";
    case Kind::kRefuse: return "refuse";
    case Kind::kInitialize: return "initialize";
    case Kind::kInitializeReply: return "initialize reply";
    case Kind::kPushPull: return "push-pull";
    case Kind::kPushPullReply: return "push-pull reply";
    case Kind::kNextStep: return "next step";
    case Kind::kNextStepReply: return "next step reply";
    case Kind::kHeartbeat: return "heartbeat";
    case Kind::kLeave: return "leave";
    case Kind::kLeaveReply: return "leave reply";
    case Kind::kSnapshot: return "snapshot";
    case Kind::kSnapshotReply: return "snapshot reply";
    case Kind::kStatus: return "status";
    case Kind::kStatusReply: return "status reply";
    case Kind::kControl: return "control";
    case Kind::kControlReply: return "control reply";
    case Kind::kLinkHello: return "link hello";
    case Kind::kLinkWelcome: return "link welcome";
    case Kind::kLinkHeartbeat: return "link heartbeat";
    case Kind::kContribution: return "contribution";
    case Kind::kGlobalDelta: return "global delta";
    case Kind::kGlobalDeltaAck: return "global delta ack";
    case Kind::kResetRequest: return "reset request";
    case Kind::kReset: return "reset";
  }
  return "unknown";
}

std::uint64_t Message::payload_bytes() const noexcept {
  return std::accumulate(
      payload.begin(), payload.end(), std::uint64_t{0},
      [](std::uint64_t sum, const core::SharedBytes& piece) { return sum + piece.size(); });
}

std::array<std::byte, kHeaderBytes> encode_header(const Message& message) {
  ISTHMUS_CHECK(message.meta.size() <= kMaxMetaBytes);
  std::array<std::byte, kHeaderBytes> header{};
  put<std::uint32_t>(header.data(), kMagic);
  put<std::uint8_t>(header.data() + 4, kWireVersion);
  put<std::uint8_t>(header.data() + 5, static_cast<std::uint8_t>(message.kind));
  put<std::uint16_t>(header.data() + 6, 0);
  put<std::uint32_t>(header.data() + 8, static_cast<std::uint32_t>(message.meta.size()));
  put<std::uint64_t>(header.data() + 16, message.payload_bytes());
  put<std::uint64_t>(header.data() + 24, message.request_id);
  put<std::uint32_t>(header.data() + kCrcOffset, header_crc(header, message.meta));
  return header;
}

Result<Header> decode_header(std::span<const std::byte> bytes, std::uint64_t max_payload_bytes) {
  if (bytes.size() < kHeaderBytes) return protocol_error("frame shorter than its header");
  if (get<std::uint32_t>(bytes.data()) != kMagic) return protocol_error("not an Isthmus frame");
  const auto version = get<std::uint8_t>(bytes.data() + 4);
  if (version != kWireVersion)
    return protocol_error("wire version " + std::to_string(version) + "; this side speaks " +
                          std::to_string(kWireVersion));
  Header header;
  header.kind = static_cast<Kind>(get<std::uint8_t>(bytes.data() + 5));
  header.flags = get<std::uint16_t>(bytes.data() + 6);
  header.meta_bytes = get<std::uint32_t>(bytes.data() + 8);
  header.crc32c = get<std::uint32_t>(bytes.data() + kCrcOffset);
  header.payload_bytes = get<std::uint64_t>(bytes.data() + 16);
  header.request_id = get<std::uint64_t>(bytes.data() + 24);
  if (!is_known(header.kind))
    return protocol_error("unknown kind " + std::to_string(static_cast<int>(header.kind)));
  if (header.flags != 0) return protocol_error("unknown flags " + std::to_string(header.flags));
  if (header.meta_bytes > kMaxMetaBytes)
    return protocol_error("meta of " + std::to_string(header.meta_bytes) + " bytes is over the limit of " +
                          std::to_string(kMaxMetaBytes));
  if (header.payload_bytes > max_payload_bytes)
    return protocol_error("payload of " + std::to_string(header.payload_bytes) +
                          " bytes is over the limit of " + std::to_string(max_payload_bytes));
  return header;
}

Status check_meta(std::span<const std::byte> header, std::string_view meta) {
  if (header_crc(header, meta) != get<std::uint32_t>(header.data() + kCrcOffset))
    return {ErrorCode::kCorruption, "frame checksum does not match"};
  return {};
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  // Boost takes and gives the register without the final inversion and reflection that the sum has; its
  // "initial remainder" is unreflected.
  const auto reflect = [](std::uint32_t x) {
    std::uint32_t y = 0;
    for (int i = 0; i < 32; ++i) y |= ((x >> i) & 1u) << (31 - i);
    return y;
  };
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc(reflect(before ^ 0xFFFFFFFF));
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace isthmus::proto
