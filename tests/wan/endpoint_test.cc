// Whole endpoints over real sockets and real TLS: messages, order, back-pressure, flush, counters, the end.

#include "wan/endpoint.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/wan/endpoint_fixture.h"
#include "tests/wan/proxy.h"

namespace isthmus::wan {
namespace {

struct Mode {
  std::uint32_t streams;
  bool plaintext;
};

class EndpointTest : public EndpointFixture {
 protected:
  // Frankfurt and virginia, connected.
  void connect() {
    frankfurt_ = start(options(kFrankfurt, heard_in_frankfurt_), heard_in_frankfurt_);
    ASSERT_TRUE(frankfurt_);
    virginia_ =
        start(options(kVirginia, heard_in_virginia_, {{kFrankfurt, frankfurt_->port()}}), heard_in_virginia_);
    ASSERT_TRUE(virginia_);
    ASSERT_TRUE(heard_in_frankfurt_.wait_up(kVirginia));
    ASSERT_TRUE(heard_in_virginia_.wait_up(kFrankfurt));
  }

  static LinkState state(const Endpoint& endpoint, Peer peer) {
    for (const LinkState& link : endpoint.links())
      if (link.peer == peer) return link;
    return {};
  }

  Recorder heard_in_frankfurt_;
  Recorder heard_in_virginia_;
  std::unique_ptr<Endpoint> frankfurt_;
  std::unique_ptr<Endpoint> virginia_;
};

constexpr std::uint64_t kSlices = 13;
constexpr std::uint64_t kEach = 150;

// Sizes around a TLS record's and a socket buffer's, and none.
std::size_t size_of(std::uint64_t number) {
  constexpr std::size_t kSizes[] = {0, 1, 100, 8160, 16384, 16385, 70000};
  return kSizes[number % std::size(kSizes)];
}

void expect_all_in_order(const std::vector<Recorder::Received>& got, Peer from,
                         bool (*is_intact)(const proto::Message&)) {
  std::map<std::uint64_t, std::uint64_t> next;
  for (const auto& [sender, message] : got) {
    if (sender != from) continue;
    const std::uint64_t number = std::stoull(message.meta);
    ASSERT_EQ(number, next[message.request_id]++) << "slice " << message.request_id;
    ASSERT_EQ(message.payload_bytes(), size_of(number));
    ASSERT_TRUE(is_intact(message));
  }
  EXPECT_EQ(next.size(), kSlices);
  for (const auto& [slice, count] : next) EXPECT_EQ(count, kEach) << "slice " << slice;
}

class EndpointModesTest : public EndpointTest, public testing::WithParamInterface<Mode> {
 protected:
  EndpointModesTest() {
    config_.links.streams = GetParam().streams;
    config_.security.plaintext = GetParam().plaintext;
  }
};

TEST_P(EndpointModesTest, MessagesArriveWholeAndInOrderBothWays) {
  connect();
  const auto send_all = [](Endpoint& from, Peer to) {
    for (std::uint64_t number = 0; number < kEach; ++number)
      for (std::uint64_t slice = 0; slice < kSlices; ++slice)
        ASSERT_TRUE(from.send(to, message(slice, number, size_of(number))).ok());
  };
  std::jthread there([&] { send_all(*frankfurt_, kVirginia); });
  send_all(*virginia_, kFrankfurt);
  ASSERT_TRUE(heard_in_virginia_.wait_messages(kSlices * kEach));
  ASSERT_TRUE(heard_in_frankfurt_.wait_messages(kSlices * kEach));
  expect_all_in_order(heard_in_frankfurt_.heard().messages, kVirginia, &is_intact);
  expect_all_in_order(heard_in_virginia_.heard().messages, kFrankfurt, &is_intact);
}

INSTANTIATE_TEST_SUITE_P(Links, EndpointModesTest,
                         testing::Values(Mode{1, false}, Mode{4, false}, Mode{1, true}, Mode{4, true}));

TEST_F(EndpointTest, ThreeRegionsAllReachEachOther) {
  connect();
  Recorder heard_in_oslo;
  const auto oslo =
      start(options(kOslo, heard_in_oslo, {{kFrankfurt, frankfurt_->port()}, {kVirginia, virginia_->port()}}),
            heard_in_oslo);
  ASSERT_TRUE(oslo);
  EXPECT_EQ(oslo->port(), 0);  // The last region dials; nobody dials it.
  ASSERT_TRUE(heard_in_oslo.wait_up(kFrankfurt) && heard_in_oslo.wait_up(kVirginia));
  ASSERT_TRUE(heard_in_frankfurt_.wait_up(kOslo) && heard_in_virginia_.wait_up(kOslo));
  for (std::uint64_t number = 0; number < kEach; ++number)
    for (std::uint64_t slice = 0; slice < kSlices; ++slice) {
      ASSERT_TRUE(oslo->send(kFrankfurt, message(slice, number, size_of(number))).ok());
      ASSERT_TRUE(oslo->send(kVirginia, message(slice, number, size_of(number))).ok());
      ASSERT_TRUE(virginia_->send(kOslo, message(slice, number, size_of(number))).ok());
    }
  ASSERT_TRUE(heard_in_frankfurt_.wait_messages(kSlices * kEach));
  ASSERT_TRUE(heard_in_virginia_.wait_messages(kSlices * kEach));
  ASSERT_TRUE(heard_in_oslo.wait_messages(kSlices * kEach));
  expect_all_in_order(heard_in_frankfurt_.heard().messages, kOslo, &is_intact);
  expect_all_in_order(heard_in_virginia_.heard().messages, kOslo, &is_intact);
  expect_all_in_order(heard_in_oslo.heard().messages, kVirginia, &is_intact);
}

TEST_F(EndpointTest, AMessageInPiecesArrivesAsOne) {
  connect();
  const proto::Message whole = message(3, 9, 3'000'000);
  proto::Message pieces = whole;
  const core::SharedBytes bytes = whole.payload[0];
  pieces.payload = {bytes.part(0, 10), bytes.part(10, 0), bytes.part(10, 2'000'000),
                    bytes.part(2'000'010, 999'990)};
  ASSERT_TRUE(virginia_->send(kFrankfurt, pieces).ok());
  ASSERT_TRUE(heard_in_frankfurt_.wait_messages(1));
  const proto::Message got = heard_in_frankfurt_.heard().messages[0].message;
  EXPECT_EQ(got.request_id, 3u);
  EXPECT_EQ(got.payload_bytes(), 3'000'000u);
  EXPECT_TRUE(is_intact(got));
}

TEST_F(EndpointTest, WhatTheHandlerDeclinesIsKeptAndOfferedAgain) {
  connect();
  heard_in_frankfurt_.accept(false);
  constexpr std::uint64_t kMessages = 200;
  for (std::uint64_t number = 0; number < kMessages; ++number)
    ASSERT_TRUE(virginia_->send(kFrankfurt, message(0, number, 50'000)).ok());
  ASSERT_TRUE(heard_in_frankfurt_.wait([](auto& heard) { return heard.declined == 1; }));
  // 10 MB do not fit into the sockets between them: the sender is held up.
  EXPECT_EQ(virginia_->flush(std::chrono::milliseconds(50)).code(), ErrorCode::kTimeout);
  EXPECT_GT(state(*virginia_, kFrankfurt).queued_bytes, 0u);
  EXPECT_EQ(heard_in_frankfurt_.heard().declined, 1);  // It is not asked over and over.
  heard_in_frankfurt_.accept(true);
  frankfurt_->resume();
  ASSERT_TRUE(heard_in_frankfurt_.wait_messages(kMessages));
  const auto messages = heard_in_frankfurt_.heard().messages;
  for (std::uint64_t number = 0; number < kMessages; ++number)
    ASSERT_EQ(messages[number].message.meta, std::to_string(number));
  EXPECT_TRUE(virginia_->flush(std::chrono::seconds(10)).ok());
  EXPECT_EQ(state(*virginia_, kFrankfurt).queued_bytes, 0u);
}

TEST_F(EndpointTest, AReaderThatPausesIsNotTakenForASilentPeer) {
  config_.links.silence = std::chrono::seconds(2);
  connect();
  heard_in_frankfurt_.accept(false);
  ASSERT_TRUE(virginia_->send(kFrankfurt, message(0, 0, 10)).ok());
  ASSERT_TRUE(heard_in_frankfurt_.wait([](auto& heard) { return heard.declined == 1; }));
  // Longer than the silence: as told by the other direction, where a clock is sent with each heartbeat.
  const auto start = std::chrono::steady_clock::now();
  Step clock = 0;
  while (std::chrono::steady_clock::now() - start < std::chrono::seconds(3)) {
    frankfurt_->set_clock(++clock);
    ASSERT_TRUE(heard_in_virginia_.wait([&](auto& heard) { return heard.clocks[kFrankfurt] == clock; }));
  }
  EXPECT_EQ(heard_in_frankfurt_.heard().downs[kVirginia], 0);
  EXPECT_EQ(heard_in_virginia_.heard().downs[kFrankfurt], 0);
}

TEST_F(EndpointTest, ClocksAndTheRoundTripRideOnHeartbeats) {
  connect();
  virginia_->set_clock(41);
  EXPECT_TRUE(heard_in_frankfurt_.wait([](auto& heard) { return heard.clocks[kVirginia] == 41; }));
  frankfurt_->set_clock(kFinishedClock);
  EXPECT_TRUE(
      heard_in_virginia_.wait([](auto& heard) { return heard.clocks[kFrankfurt] == kFinishedClock; }));
  Step clock = 100;  // Each heard clock is one more heartbeat.
  while (state(*frankfurt_, kVirginia).rtt.count() == 0 && clock < 300) {
    virginia_->set_clock(++clock);
    ASSERT_TRUE(heard_in_frankfurt_.wait([&](auto& heard) { return heard.clocks[kVirginia] == clock; }));
  }
  EXPECT_GT(state(*frankfurt_, kVirginia).rtt.count(), 0);
  EXPECT_LT(state(*frankfurt_, kVirginia).rtt, std::chrono::seconds(5));
}

TEST_F(EndpointTest, CountsWhatTheNetworkCarried) {
  config_.links.heartbeat = std::chrono::seconds(1);
  frankfurt_ = start(options(kFrankfurt, heard_in_frankfurt_), heard_in_frankfurt_);
  ASSERT_TRUE(frankfurt_);
  Proxy proxy(frankfurt_->port());
  virginia_ = start(options(kVirginia, heard_in_virginia_, {{kFrankfurt, proxy.port()}}), heard_in_virginia_);
  ASSERT_TRUE(virginia_ && heard_in_virginia_.wait_up(kFrankfurt));
  constexpr std::uint64_t kBytes = 1'000'000;
  ASSERT_TRUE(virginia_->send(kFrankfurt, message(0, 0, kBytes)).ok());
  ASSERT_TRUE(heard_in_frankfurt_.wait_messages(1));
  // A heartbeat may be on its way; between two of them both sides and the wire agree.
  EXPECT_TRUE(wait_until([&] {
    const LinkState here = state(*virginia_, kFrankfurt);
    const LinkState there = state(*frankfurt_, kVirginia);
    return here.sent_bytes == proxy.to_target_bytes() && there.received_bytes == here.sent_bytes &&
           there.sent_bytes == proxy.from_target_bytes() && here.received_bytes == there.sent_bytes;
  }));
  EXPECT_GT(state(*virginia_, kFrankfurt).sent_bytes, kBytes + 1000);  // Certificates, records.
  EXPECT_LT(state(*virginia_, kFrankfurt).sent_bytes, kBytes * 1.01 + 10'000);
}

TEST_F(EndpointTest, SaysSoWhenItsPortIsTaken) {
  connect();
  config_.regions[0].servers[0].wan_bind = {"127.0.0.1", frankfurt_->port()};
  const auto second = Endpoint::start(options(kFrankfurt, heard_in_frankfurt_), heard_in_frankfurt_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(second.status().message(), "address 127.0.0.1:" + std::to_string(frankfurt_->port()) +
                                           " (wan of region frankfurt) is in use");
}

TEST_F(EndpointTest, RefusesToSendWhatCannotGo) {
  frankfurt_ = start(options(kFrankfurt, heard_in_frankfurt_), heard_in_frankfurt_);
  EXPECT_EQ(frankfurt_->send(kVirginia, message(0, 0, 1)).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(frankfurt_->send({7, 0}, message(0, 0, 1)).code(), ErrorCode::kNotFound);
  config_.limits.message_bytes = 1000;
  virginia_ =
      start(options(kVirginia, heard_in_virginia_, {{kFrankfurt, frankfurt_->port()}}), heard_in_virginia_);
  ASSERT_TRUE(heard_in_virginia_.wait_up(kFrankfurt));
  EXPECT_EQ(virginia_->send(kFrankfurt, message(0, 0, 1001)).code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(virginia_->send(kFrankfurt, message(0, 0, 1000)).ok());
  EXPECT_TRUE(heard_in_frankfurt_.wait_messages(1));
}

TEST_F(EndpointTest, ReportsMissingKeys) {
  config_.security.directory = temporary_.path() + "/elsewhere";
  const auto started = Endpoint::start(options(kFrankfurt, heard_in_frankfurt_), heard_in_frankfurt_);
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.status().code(), ErrorCode::kNotFound);
}

TEST_F(EndpointTest, WhatWasFlushedArrivesThoughTheSenderEnds) {
  connect();
  constexpr std::uint64_t kMessages = 100;
  for (std::uint64_t number = 0; number < kMessages; ++number)
    ASSERT_TRUE(virginia_->send(kFrankfurt, message(number, number, 20'000)).ok());
  ASSERT_TRUE(virginia_->flush(std::chrono::seconds(20)).ok());
  virginia_.reset();
  EXPECT_TRUE(heard_in_frankfurt_.wait_messages(kMessages));
  EXPECT_TRUE(heard_in_frankfurt_.wait_down(kVirginia));
}

// Ends in mid-transfer to a peer that has stopped reading, while a second one is being dialled in vain.
TEST_F(EndpointTest, EndsAtAnyMoment) {
  for (int round = 0; round < 5; ++round) {
    connect();
    Recorder heard_in_oslo;
    auto oslo = start(options(kOslo, heard_in_oslo, {{kFrankfurt, frankfurt_->port()}, {kVirginia, 1}}),
                      heard_in_oslo);
    ASSERT_TRUE(oslo && heard_in_oslo.wait_up(kFrankfurt));
    heard_in_frankfurt_.accept(false);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(oslo->send(kFrankfurt, message(0, 0, 1'000'000)).ok());
    const auto before = std::chrono::steady_clock::now();
    if (round % 2) frankfurt_.reset();
    oslo.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
    virginia_.reset();
    frankfurt_.reset();
    heard_in_frankfurt_.accept(true);
  }
}

}  // namespace
}  // namespace isthmus::wan
