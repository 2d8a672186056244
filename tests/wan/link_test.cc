#include "wan/link.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "proto/meta.h"
#include "tests/wan/recorder.h"

namespace isthmus::wan {
namespace {

constexpr Peer kPeer{1, 0};

// A link of two streams whose sockets are not connected: what is sent stays in their queues.
class LinkTest : public testing::Test {
 protected:
  std::shared_ptr<Stream> make_stream() {
    auto stream = std::make_shared<Stream>(Stream::Socket(io_), nullptr, "ca.pem");
    stream->open({[] { return proto::Message(); },
                  [this](std::uint64_t bytes, bool written) { link_.account(bytes, written); }});
    return stream;
  }
  std::shared_ptr<Stream> attach(std::uint32_t number, std::uint64_t incarnation = 1, Step clock = 0) {
    auto stream = make_stream();
    link_.attach({kPeer, number, incarnation, clock}, stream);
    return stream;
  }
  void send(std::uint64_t slice) {
    proto::Message message;
    message.kind = proto::Kind::kContribution;
    message.request_id = slice;
    link_.note_queued(frame_bytes(message));
    link_.send(std::move(message));
  }
  int ups() { return recorder_.heard().ups[kPeer]; }
  int downs() { return recorder_.heard().downs[kPeer]; }

  const Status cut_{ErrorCode::kUnavailable, "cut"};
  boost::asio::io_context io_;
  Recorder recorder_;
  Link link_{kPeer, "virginia", 2, recorder_, [this](const std::string& line) { recorder_.log(line); }};
};

TEST_F(LinkTest, IsUpOnceAllItsStreamsAre) {
  attach(0);
  EXPECT_FALSE(link_.up());
  EXPECT_EQ(ups(), 0);
  attach(1, 1, 17);
  EXPECT_TRUE(link_.up());
  EXPECT_EQ(ups(), 1);
  EXPECT_EQ(recorder_.heard().clocks[kPeer], 17u);
  EXPECT_EQ(recorder_.heard().incarnations[kPeer], 1u);
}

TEST_F(LinkTest, StaysUpWhileAStreamLivesAndAsksToSendAgain) {
  const auto first = attach(0);
  const auto second = attach(1);
  link_.detach(second, cut_);
  EXPECT_TRUE(link_.up());
  EXPECT_EQ(ups(), 2);
  EXPECT_EQ(downs(), 0);
  link_.detach(second, cut_);  // Known already.
  EXPECT_EQ(ups(), 2);
  link_.detach(first, cut_);
  EXPECT_FALSE(link_.up());
  EXPECT_EQ(downs(), 1);
  EXPECT_EQ(link_.state().last_error, "cut");
}

TEST_F(LinkTest, ALostStreamThatComesBackIsCountedAndBringsNoSecondResend) {
  attach(0);
  link_.detach(attach(1), cut_);
  attach(1);
  EXPECT_EQ(ups(), 2);  // Up, and the loss.
  EXPECT_EQ(link_.state().reconnects, 1u);
}

TEST_F(LinkTest, MessagesOfALostStreamAreLostAndLaterOnesTakeAnother) {
  attach(0);
  const auto second = attach(1);
  send(1);
  send(3);
  EXPECT_GT(link_.queued_bytes(), 0u);
  EXPECT_EQ(link_.lost_messages(), 0u);
  link_.detach(second, cut_);
  EXPECT_EQ(link_.queued_bytes(), 0u);
  EXPECT_EQ(link_.lost_messages(), 2u);
  send(1);
  EXPECT_EQ(link_.queued_bytes(), proto::kHeaderBytes);
}

TEST_F(LinkTest, ALinkThatIsDownQueuesNothing) {
  attach(0);
  send(0);
  EXPECT_EQ(link_.queued_bytes(), 0u);
  EXPECT_EQ(link_.lost_messages(), 1u);
}

TEST_F(LinkTest, ANewLifeOfThePeerEndsTheStreamsOfTheOld) {
  const auto first = attach(0);
  const auto second = attach(1);
  attach(0, 2);
  EXPECT_TRUE(first->failed());
  EXPECT_TRUE(second->failed());
  EXPECT_FALSE(link_.up());
  EXPECT_EQ(downs(), 1);
  EXPECT_NE(recorder_.heard().down_reasons[0].message().find("virginia has restarted"), std::string::npos);
  attach(1, 2);
  EXPECT_EQ(ups(), 2);
  EXPECT_EQ(recorder_.heard().incarnations[kPeer], 2u);
  link_.detach(first, cut_);  // Its task ends later.
  EXPECT_TRUE(link_.up());
}

TEST_F(LinkTest, ANewConnectionTakesThePlaceOfAStreamThatWeStillThoughtAlive) {
  const auto first = attach(0);
  attach(1);
  attach(0);
  EXPECT_TRUE(first->failed());
  EXPECT_EQ(ups(), 2);  // What it carried may be lost.
  EXPECT_EQ(downs(), 0);
}

TEST_F(LinkTest, AnOlderHeartbeatDoesNotSetTheClockBack) {
  const auto stream = attach(0);
  attach(1);
  const auto heartbeat = [&](Step clock, std::uint64_t sent_us) {
    proto::LinkHeartbeat meta;
    meta.set_clock(clock);
    meta.set_sent_us(sent_us);
    return link_.note_heartbeat(*stream, proto::make_message(proto::Kind::kLinkHeartbeat, 0, meta), {});
  };
  EXPECT_TRUE(heartbeat(20, 200).ok());
  EXPECT_TRUE(heartbeat(10, 100).ok());
  EXPECT_EQ(recorder_.heard().clocks[kPeer], 20u);
  EXPECT_TRUE(heartbeat(15, 300).ok());  // A worker that rejoined may set it back.
  EXPECT_EQ(recorder_.heard().clocks[kPeer], 15u);
}

TEST_F(LinkTest, TheRoundTripIsTheEchoLessTheTimeItWasHeld) {
  const auto stream = attach(0);
  attach(1);
  const core::TimePoint now{std::chrono::microseconds(1'000'000)};
  proto::LinkHeartbeat meta;
  meta.set_sent_us(5);
  meta.set_echo_us(900'000);
  meta.set_held_us(20'000);
  const auto note = [&] {
    return link_.note_heartbeat(*stream, proto::make_message(proto::Kind::kLinkHeartbeat, 0, meta), now);
  };
  ASSERT_TRUE(note().ok());
  EXPECT_EQ(link_.state().rtt, std::chrono::milliseconds(80));
  meta.set_held_us(60'000);
  ASSERT_TRUE(note().ok());
  EXPECT_EQ(link_.state().rtt, std::chrono::milliseconds(75));  // 7/8 of 80 and 1/8 of 40.
  // What cannot be true is not taken: from the future, or held longer than it took.
  meta.set_echo_us(1'000'001);
  ASSERT_TRUE(note().ok());
  meta.set_echo_us(900'000);
  meta.set_held_us(~std::uint64_t{0});
  ASSERT_TRUE(note().ok());
  EXPECT_EQ(link_.state().rtt, std::chrono::milliseconds(75));
}

TEST_F(LinkTest, HeartbeatsEchoThePeersLast) {
  const auto stream = attach(0);
  stream->echo_us = 7;
  stream->echo_at = core::TimePoint(std::chrono::microseconds(100));
  const proto::Message made =
      link_.make_heartbeat(*stream, 4, core::TimePoint(std::chrono::microseconds(130)));
  const auto meta = proto::parse_meta<proto::LinkHeartbeat>(made);
  ASSERT_TRUE(meta.ok());
  EXPECT_EQ(meta->clock(), 4u);
  EXPECT_EQ(meta->sent_us(), 130u);
  EXPECT_EQ(meta->echo_us(), 7u);
  EXPECT_EQ(meta->held_us(), 30u);

  proto::Message garbage = made;
  garbage.meta = "\xff\xff";
  EXPECT_EQ(link_.note_heartbeat(*stream, garbage, {}).code(), ErrorCode::kProtocol);
}

TEST_F(LinkTest, RefusalsAreAllCountedAndToldOnceASecond) {
  core::TimePoint now{std::chrono::hours(1)};
  const Status why(ErrorCode::kRefused, "wrong job");
  for (int i = 0; i < 3; ++i) link_.note_refusal(why, now);
  EXPECT_EQ(recorder_.heard().refusals.size(), 1u);
  EXPECT_EQ(link_.state().refused, 3u);
  link_.note_refusal(why, now + std::chrono::seconds(1));
  EXPECT_EQ(recorder_.heard().refusals.size(), 2u);
  // Garbage ends its stream; it says nothing about who belongs.
  link_.note_refusal({ErrorCode::kProtocol, "not a frame"}, now + std::chrono::seconds(3));
  EXPECT_EQ(recorder_.heard().refusals.size(), 2u);
  EXPECT_EQ(link_.state().refused, 5u);
}

}  // namespace
}  // namespace isthmus::wan
