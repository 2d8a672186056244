#include "server/wan_messages.h"

#include <gtest/gtest.h>

#include "proto/meta.h"

namespace isthmus::server {
namespace {

using proto::Kind;

core::SharedBytes bytes_of(std::string_view text) { return core::copy_bytes(std::as_bytes(std::span(text))); }
std::string text_of(const core::SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.view.data()), bytes.size()};
}

// Each field another number, so that none can stand for another.
Contribution contribution() {
  return {{0xA000000000000001, 2}, {3, 4}, 0xB000000000000005, true, 6, bytes_of("record")};
}
GlobalDelta global_delta() { return {{1, 2}, {3, 4}, {5, 6}, 0xC000000000000007, 8, bytes_of("record")}; }
Reset reset() { return {{1, 2}, {3, 4}, true, true, bytes_of("values")}; }

TEST(WanMessagesTest, AContributionComesAsItWasSent) {
  const Contribution sent = contribution();
  const proto::Message message = to_message(7, sent, 99);
  EXPECT_EQ(message.kind, Kind::kContribution);
  EXPECT_EQ(message.request_id, 7u);
  Step clock = 0;
  const auto got = to_contribution(message, clock);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(clock, 99u);
  EXPECT_EQ(got->id, sent.id);
  EXPECT_EQ(got->base, sent.base);
  EXPECT_EQ(got->samples, sent.samples);
  EXPECT_EQ(got->final, sent.final);
  EXPECT_EQ(got->codec, sent.codec);
  EXPECT_EQ(got->record.view.data(), sent.record.view.data()) << "records are not copied";
  EXPECT_EQ(text_of(got->record), "record");
}

TEST(WanMessagesTest, AGlobalDeltaComesAsItWasSent) {
  const GlobalDelta sent = global_delta();
  const proto::Message message = to_message(7, sent, 9, 99);
  EXPECT_EQ(message.kind, Kind::kGlobalDelta);
  EXPECT_EQ(message.request_id, 7u);
  Step clock = 0;
  const auto got = to_global_delta(message, clock);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(clock, 99u);
  EXPECT_EQ(got->base, sent.base);
  EXPECT_EQ(got->id, sent.id);
  EXPECT_EQ(got->folded, sent.folded);
  EXPECT_EQ(got->checksum, sent.checksum);
  EXPECT_EQ(got->codec, sent.codec);
  EXPECT_EQ(text_of(got->record), "record");
  const auto meta = proto::parse_meta<proto::GlobalDelta>(message);
  EXPECT_EQ(meta->folded().region(), 9u);
}

TEST(WanMessagesTest, AChecksumOfZeroIsNotTheSameAsNone) {
  GlobalDelta sent = global_delta();
  Step clock = 0;
  sent.checksum = 0;
  EXPECT_EQ(to_global_delta(to_message(1, sent, 0, 0), clock)->checksum, std::optional<std::uint64_t>(0));
  sent.checksum.reset();
  EXPECT_EQ(to_global_delta(to_message(1, sent, 0, 0), clock)->checksum, std::nullopt);
}

TEST(WanMessagesTest, AResetComesAsItWasSent) {
  const Reset sent = reset();
  const proto::Message message = to_message(7, sent, 9, 99);
  EXPECT_EQ(message.kind, Kind::kReset);
  Step clock = 0;
  const auto got = to_reset(message, clock);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(clock, 99u);
  EXPECT_EQ(got->id, sent.id);
  EXPECT_EQ(got->folded, sent.folded);
  EXPECT_TRUE(got->final);
  EXPECT_TRUE(got->all_told);
  EXPECT_EQ(text_of(got->values), "values");
  Reset other = sent;
  other.all_told = false;
  EXPECT_FALSE(to_reset(to_message(7, other, 9, 99), clock)->all_told);
}

TEST(WanMessagesTest, AnAckAndAResetRequestSayWhatTheRegionHas) {
  const GlobalDeltaAck sent{{3, 4}, 5};
  for (const proto::Message& message : {to_message(7, sent), reset_request(7, sent, "checksum")}) {
    EXPECT_EQ(message.request_id, 7u);
    EXPECT_TRUE(message.payload.empty());
    const auto got = to_ack(message);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->id, sent.id);
    EXPECT_EQ(got->incarnation, sent.incarnation);
  }
  EXPECT_EQ(to_message(7, sent).kind, Kind::kGlobalDeltaAck);
  const proto::Message request = reset_request(7, sent, "checksum");
  EXPECT_EQ(request.kind, Kind::kResetRequest);
  EXPECT_EQ(proto::parse_meta<proto::ResetRequest>(request)->why(), "checksum");
}

TEST(WanMessagesTest, AnEmptyRecordNeedsNoPayload) {
  Contribution sent = contribution();
  sent.record = {};
  const proto::Message message = to_message(7, sent, 0);
  EXPECT_TRUE(message.payload.empty());
  Step clock = 0;
  EXPECT_EQ(to_contribution(message, clock)->record.size(), 0u);
}

// Reads `message` as whatever its kind says.
Status read(const proto::Message& message) {
  Step clock = 0;
  switch (message.kind) {
    case Kind::kContribution: return to_contribution(message, clock).status();
    case Kind::kGlobalDelta: return to_global_delta(message, clock).status();
    case Kind::kReset: return to_reset(message, clock).status();
    default: return to_ack(message).status();
  }
}

std::vector<proto::Message> one_of_each() {
  return {to_message(7, contribution(), 1), to_message(7, global_delta(), 0, 1), to_message(7, reset(), 0, 1),
          to_message(7, GlobalDeltaAck{{1, 2}, 3}), reset_request(7, {{1, 2}, 3}, "why")};
}

TEST(WanMessagesTest, ABrokenMetaIsRefused) {
  for (proto::Message message : one_of_each()) {
    message.meta = "\x0a\xff\xff\xff\xff\x0f";  // A field that claims to be 4 GiB long.
    EXPECT_EQ(read(message).code(), ErrorCode::kProtocol) << to_string(message.kind);
  }
}

TEST(WanMessagesTest, AMetaThatEndsEarlyIsRefusedOrReadAsShorter) {
  for (const proto::Message& message : one_of_each()) {
    for (std::size_t length = 0; length < message.meta.size(); ++length) {
      proto::Message cut = message;
      cut.meta.resize(length);
      const Status status = read(cut);
      EXPECT_TRUE(status.ok() || status.code() == ErrorCode::kProtocol) << status.to_string();
    }
  }
}

TEST(WanMessagesTest, MoreThanOneRecordIsRefused) {
  for (proto::Message message : one_of_each()) {
    if (message.payload.empty()) continue;
    message.payload.push_back(bytes_of("more"));
    EXPECT_EQ(read(message).code(), ErrorCode::kProtocol) << to_string(message.kind);
  }
}

TEST(WanMessagesTest, ACodecThatIsNoByteIsRefused) {
  proto::Contribution up;
  up.set_codec(256 + 1);
  EXPECT_EQ(read(proto::make_message(Kind::kContribution, 7, up)).code(), ErrorCode::kProtocol);
  proto::GlobalDelta down;
  down.set_codec(0xFFFFFFFF);
  EXPECT_EQ(read(proto::make_message(Kind::kGlobalDelta, 7, down)).code(), ErrorCode::kProtocol);
}

}  // namespace
}  // namespace isthmus::server
