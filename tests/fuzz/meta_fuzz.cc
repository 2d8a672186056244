// The metas of all kinds of messages, what is made of them, and the records that a payload is cut into.

#include "proto/meta.h"
#include "tests/fuzz/fuzz_input.h"

using namespace isthmus;

namespace {

template <typename Meta>
void parse(const proto::Message& message) {
  const Result<Meta> meta = proto::parse_meta<Meta>(message);
  if (!meta.ok()) {
    FUZZ_EXPECT(meta.status().code() == ErrorCode::kProtocol);
    return;
  }
  // What we would say ourselves, we understand.
  const auto again = proto::parse_meta<Meta>(proto::make_message(message.kind, 1, *meta));
  FUZZ_EXPECT(again.ok());
}

template <typename... Metas>
void parse_one(std::size_t which, const proto::Message& message) {
  std::size_t i = 0;
  ((which % sizeof...(Metas) == i++ ? parse<Metas>(message) : void()), ...);
}

void layout(const proto::Message& message) {
  const auto table = proto::parse_meta<proto::LayoutTable>(message);
  if (!table.ok()) return;
  const auto layout = proto::from_table(*table);
  if (!layout.ok()) {
    FUZZ_EXPECT(layout.status().code() == ErrorCode::kProtocol);
    return;
  }
  const auto again = proto::from_table(proto::to_table(*layout));
  FUZZ_EXPECT(again.ok() && again->hash() == layout->hash());
  FUZZ_EXPECT(core::Layout::difference(*layout, *again).empty());
}

void records(fuzz::FuzzInput& input) {
  proto::Message message;
  const std::size_t pieces = input.take<std::uint8_t>() % 4;
  for (std::size_t i = 0; i < pieces; ++i)
    message.payload.push_back(core::copy_bytes(input.take_bytes(input.take<std::uint8_t>())));
  std::vector<std::uint64_t> sizes;
  while (input.left() > 0 && sizes.size() < 16) {
    const bool large = input.take<std::uint8_t>() % 8 == 7;
    sizes.push_back(large ? input.take<std::uint64_t>() : input.take<std::uint8_t>());
  }
  const auto records = proto::split_records(message, sizes);
  if (!records.ok()) {
    FUZZ_EXPECT(records.status().code() == ErrorCode::kProtocol);
    return;
  }
  std::uint64_t total = 0;
  FUZZ_EXPECT(records->size() == sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    FUZZ_EXPECT((*records)[i].size() == sizes[i]);
    for (const std::byte& byte : (*records)[i].view) total += static_cast<std::uint64_t>(byte) * 0 + 1;
  }
  FUZZ_EXPECT(total == message.payload_bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::FuzzInput input(data, size);
  const auto which = input.take<std::uint8_t>();
  if (which == 0) {
    records(input);
    return 0;
  }
  proto::Message message;
  message.kind = proto::Kind::kHello;
  const auto meta = input.take_bytes(input.left());
  message.meta.assign(reinterpret_cast<const char*>(meta.data()), meta.size());
  if (which == 1) {
    layout(message);
  } else if (which == 2) {
    FUZZ_EXPECT(!proto::refusal_status(message).ok());
  } else {
    parse_one<proto::Hello, proto::Welcome, proto::Refuse, proto::Initialize, proto::PushPull,
              proto::PushPullReply, proto::NextStep, proto::NextStepReply, proto::Heartbeat, proto::Leave,
              proto::LeaveReply, proto::Snapshot, proto::SnapshotReply, proto::Control, proto::StatusRequest,
              proto::StatusReply, proto::LinkHello, proto::LinkWelcome, proto::LinkHeartbeat,
              proto::Contribution, proto::GlobalDelta, proto::GlobalDeltaAck, proto::ResetRequest,
              proto::Reset>(which - 3u, message);
  }
  return 0;
}
