// The header of a frame, its checksum, and its meta as far as the header goes.

#include "proto/frame.h"
#include "tests/fuzz/fuzz_input.h"

using namespace isthmus;

namespace {

constexpr std::uint64_t kMaxPayload = 1 << 20;

// What we send, we understand.
void round_trip(fuzz::FuzzInput input) {
  proto::Message message;
  message.kind = static_cast<proto::Kind>(input.take<std::uint8_t>());
  message.request_id = input.take<std::uint64_t>();
  const auto meta = input.take_bytes(input.left());
  message.meta.assign(reinterpret_cast<const char*>(meta.data()), meta.size());
  const auto bytes = proto::encode_header(message);
  const auto header = proto::decode_header(bytes, kMaxPayload);
  FUZZ_EXPECT(header.ok() == proto::is_known(message.kind));
  if (!header.ok()) return;
  FUZZ_EXPECT(header->kind == message.kind && header->request_id == message.request_id);
  FUZZ_EXPECT(header->meta_bytes == message.meta.size());
  FUZZ_EXPECT(proto::check_meta(bytes, message.meta).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::FuzzInput input(data, size);
  round_trip(input);
  const auto bytes = input.take_bytes(proto::kHeaderBytes);
  const auto header = proto::decode_header(bytes, kMaxPayload);
  if (!header.ok()) {
    FUZZ_EXPECT(header.status().code() == ErrorCode::kProtocol);
    return 0;
  }
  FUZZ_EXPECT(proto::is_known(header->kind));
  FUZZ_EXPECT(header->payload_bytes <= kMaxPayload && header->meta_bytes <= proto::kMaxMetaBytes);
  const auto meta = input.take_bytes(header->meta_bytes);
  const Status status = proto::check_meta(bytes, {reinterpret_cast<const char*>(meta.data()), meta.size()});
  FUZZ_EXPECT(status.ok() || status.code() == ErrorCode::kCorruption);
  return 0;
}
