// Links that are lost and come back: peers that end, restart, fall silent; streams that are cut.

#include "wan/link_keeper.h"

#include <gtest/gtest.h>

#include "tests/wan/endpoint_fixture.h"
#include "tests/wan/proxy.h"

namespace isthmus::wan {
namespace {

class LinkKeeperTest : public EndpointFixture {
 protected:
  void start_frankfurt(std::uint64_t incarnation = 1) {
    EndpointOptions made = options(kFrankfurt, heard_in_frankfurt_);
    made.incarnation = incarnation;
    frankfurt_ = start(std::move(made), heard_in_frankfurt_);
    ASSERT_TRUE(frankfurt_);
  }
  void start_virginia(std::uint16_t port, std::uint64_t incarnation = 1) {
    EndpointOptions made = options(kVirginia, heard_in_virginia_, {{kFrankfurt, port}});
    made.incarnation = incarnation;
    virginia_ = start(std::move(made), heard_in_virginia_);
    ASSERT_TRUE(virginia_);
  }
  // Both sides say so, for the nth time.
  void expect_up(int times) {
    ASSERT_TRUE(heard_in_frankfurt_.wait_up(kVirginia, times));
    ASSERT_TRUE(heard_in_virginia_.wait_up(kFrankfurt, times));
  }
  void expect_messages_pass() {
    const std::size_t before = heard_in_frankfurt_.heard().messages.size();
    for (std::uint64_t slice = 0; slice < 8; ++slice)
      ASSERT_TRUE(virginia_->send(kFrankfurt, message(slice, 1, 1000)).ok());
    EXPECT_TRUE(heard_in_frankfurt_.wait_messages(before + 8));
  }

  Recorder heard_in_frankfurt_;
  Recorder heard_in_virginia_;
  std::unique_ptr<Endpoint> frankfurt_;
  std::unique_ptr<Endpoint> virginia_;
};

TEST_F(LinkKeeperTest, TheDialerMayStartFirst) {
  start_frankfurt();
  Proxy proxy(frankfurt_->port());
  frankfurt_.reset();
  start_virginia(proxy.port());
  ASSERT_TRUE(wait_until([&] { return virginia_->links()[0].last_error != ""; }));  // Nobody is there.
  start_frankfurt();
  proxy.set_target(frankfurt_->port());
  expect_up(1);
  expect_messages_pass();
}

TEST_F(LinkKeeperTest, AListenerThatRestartsIsFoundAgain) {
  start_frankfurt();
  Proxy proxy(frankfurt_->port());
  start_virginia(proxy.port());
  expect_up(1);
  frankfurt_.reset();
  ASSERT_TRUE(heard_in_virginia_.wait_down(kFrankfurt));
  EXPECT_EQ(virginia_->send(kFrankfurt, message(0, 0, 1)).code(), ErrorCode::kUnavailable);
  start_frankfurt(2);
  proxy.set_target(frankfurt_->port());
  expect_up(2);
  EXPECT_EQ(heard_in_virginia_.heard().incarnations[kFrankfurt], 2u);
  expect_messages_pass();
  EXPECT_EQ(virginia_->links()[0].reconnects, 1u);
}

TEST_F(LinkKeeperTest, ADialerThatRestartsIsTakenBack) {
  start_frankfurt();
  start_virginia(frankfurt_->port());
  expect_up(1);
  virginia_.reset();
  ASSERT_TRUE(heard_in_frankfurt_.wait_down(kVirginia));
  start_virginia(frankfurt_->port(), 2);
  expect_up(2);
  EXPECT_EQ(heard_in_frankfurt_.heard().incarnations[kVirginia], 2u);
  expect_messages_pass();
}

TEST_F(LinkKeeperTest, ACutLinkGoesDownAndComesBackAndItsBytesAddUp) {
  start_frankfurt();
  Proxy proxy(frankfurt_->port());
  start_virginia(proxy.port());
  expect_up(1);
  expect_messages_pass();
  const std::uint64_t sent = virginia_->links()[0].sent_bytes;
  proxy.cut();
  ASSERT_TRUE(heard_in_virginia_.wait_down(kFrankfurt));
  ASSERT_TRUE(heard_in_frankfurt_.wait_down(kVirginia));
  expect_up(2);
  expect_messages_pass();
  EXPECT_GE(virginia_->links()[0].sent_bytes, sent + 8000);
}

TEST_F(LinkKeeperTest, OneLostStreamOfFourLeavesTheLinkUp) {
  config_.links.streams = 4;
  start_frankfurt();
  Proxy proxy(frankfurt_->port());
  start_virginia(proxy.port());
  expect_up(1);
  proxy.cut_the_oldest();
  expect_up(2);  // Send again ...
  expect_messages_pass();
  EXPECT_EQ(heard_in_virginia_.heard().downs[kFrankfurt], 0);
  EXPECT_EQ(heard_in_frankfurt_.heard().downs[kVirginia], 0);
  // ... and the lost one comes back.
  EXPECT_TRUE(wait_until([&] { return virginia_->links()[0].reconnects == 1; }));
  expect_messages_pass();
}

TEST_F(LinkKeeperTest, APeerThatFallsSilentIsGivenUpAndFoundAgain) {
  config_.links.silence = std::chrono::milliseconds(500);
  start_frankfurt();
  Proxy proxy(frankfurt_->port());
  start_virginia(proxy.port());
  expect_up(1);
  proxy.freeze();  // Nothing is closed: only time can tell.
  ASSERT_TRUE(heard_in_virginia_.wait_down(kFrankfurt));
  ASSERT_TRUE(heard_in_frankfurt_.wait_down(kVirginia));
  EXPECT_EQ(heard_in_virginia_.heard().down_reasons[0].message(), "brought nothing for 0.5 s");
  EXPECT_EQ(heard_in_virginia_.heard().down_reasons[0].code(), ErrorCode::kTimeout);
  proxy.thaw();
  expect_up(2);
  expect_messages_pass();
}

TEST_F(LinkKeeperTest, AHandshakeThatStandsStillEndsAndIsTriedAgain) {
  start_frankfurt();
  Proxy frozen(frankfurt_->port());
  frozen.freeze();
  EndpointOptions made = options(kVirginia, heard_in_virginia_, {{kFrankfurt, frozen.port()}});
  made.timing.handshake = std::chrono::milliseconds(300);
  virginia_ = start(std::move(made), heard_in_virginia_);
  EXPECT_TRUE(wait_until([&] { return virginia_->links()[0].last_error.find("no answer within") == 0; }))
      << virginia_->links()[0].last_error;
  frozen.thaw();
  expect_up(1);
}

TEST_F(LinkKeeperTest, MoreStrangersThanPlacesDoNotKeepAPeerOut) {
  start_frankfurt();
  boost::asio::io_context io;
  std::vector<boost::asio::ip::tcp::socket> strangers;
  for (std::size_t i = 0; i < 2 * LinkKeeper::kMaxHandshakes; ++i) {
    strangers.emplace_back(io);
    strangers.back().connect({boost::asio::ip::address_v4::loopback(), frankfurt_->port()});
  }
  start_virginia(frankfurt_->port());
  expect_up(1);
  expect_messages_pass();
  // The first of them has been shown the door.
  char byte = 0;
  boost::system::error_code error;
  strangers.front().read_some(boost::asio::buffer(&byte, 1), error);
  EXPECT_TRUE(error);
}

}  // namespace
}  // namespace isthmus::wan
