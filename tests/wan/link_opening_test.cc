// Who is let in and who is not, between real endpoints and from a peer that speaks bytes of the test's.

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "proto/meta.h"
#include "tests/wan/endpoint_fixture.h"
#include "wan/link_handshake.h"
#include "wan/tls.h"

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;

// Virginia's certificate, and whatever bytes the test wants.
class RawPeer {
 public:
  RawPeer(const core::SecurityConfig& security, std::uint16_t port)
      : context_(make_tls_context(security, "virginia")->release()), tls_(io_, context_) {
    tls_.next_layer().connect({asio::ip::address_v4::loopback(), port});
    tls_.handshake(asio::ssl::stream_base::client);
  }

  void send(const void* bytes, std::size_t count) { asio::write(tls_, asio::buffer(bytes, count)); }
  void send(const proto::Message& message) {
    const auto header = proto::encode_header(message);
    send(header.data(), header.size());
    send(message.meta.data(), message.meta.size());
  }
  // The next frame but heartbeats; nothing at the end.
  std::optional<proto::Message> receive() {
    for (;;) {
      std::array<std::byte, proto::kHeaderBytes> bytes;
      boost::system::error_code error;
      asio::read(tls_, asio::buffer(bytes), error);
      if (error) return std::nullopt;
      const auto header = proto::decode_header(bytes, 0);
      if (!header.ok()) return std::nullopt;
      proto::Message message{header->kind, header->request_id, std::string(header->meta_bytes, '\0'), {}};
      asio::read(tls_, asio::buffer(message.meta), error);
      if (message.kind != proto::Kind::kLinkHeartbeat) return message;
    }
  }

 private:
  asio::io_context io_;
  asio::ssl::context context_;
  asio::ssl::stream<asio::ip::tcp::socket> tls_;
};

class LinkOpeningTest : public EndpointFixture {
 protected:
  void start_frankfurt() {
    frankfurt_ = start(options(kFrankfurt, heard_in_frankfurt_), heard_in_frankfurt_);
    ASSERT_TRUE(frankfurt_);
  }
  // With options that a test has changed.
  void start_virginia(EndpointOptions changed) {
    changed.via = {{kFrankfurt, {"127.0.0.1", frankfurt_->port()}}};
    virginia_ = start(std::move(changed), heard_in_virginia_);
    ASSERT_TRUE(virginia_);
  }
  EndpointOptions virginias() { return options(kVirginia, heard_in_virginia_); }
  // Both sides say why, and the peer whom all is well with still gets in.
  void expect_refusal(const std::string& at_frankfurt, const std::string& at_virginia) {
    EXPECT_TRUE(heard_in_virginia_.wait_refusal(at_virginia)) << at_virginia;
    EXPECT_TRUE(heard_in_frankfurt_.wait_log(at_frankfurt)) << at_frankfurt;
    EXPECT_GE(virginia_->links()[0].refused, 1u);
    EXPECT_EQ(heard_in_virginia_.heard().ups[kFrankfurt], 0);
    EXPECT_EQ(heard_in_frankfurt_.heard().ups[kVirginia], 0);
    virginia_.reset();
    start_virginia(virginias());
    EXPECT_TRUE(heard_in_virginia_.wait_up(kFrankfurt));
  }
  // A raw peer that has been welcomed as virginia's only stream.
  std::unique_ptr<RawPeer> admitted_peer(std::uint64_t incarnation = 1) {
    auto peer = std::make_unique<RawPeer>(config_.security, frankfurt_->port());
    peer->send(hello(incarnation));
    const auto answer = peer->receive();
    EXPECT_TRUE(answer && answer->kind == proto::Kind::kLinkWelcome);
    return peer;
  }
  proto::Message hello(std::uint64_t incarnation = 1) {
    const LocalSide local{config_, layout_, 1, 0, incarnation};
    return proto::make_message(proto::Kind::kLinkHello, 0, make_hello(local, 7, 0, 0));
  }

  Recorder heard_in_frankfurt_;
  Recorder heard_in_virginia_;
  std::unique_ptr<Endpoint> frankfurt_;
  std::unique_ptr<Endpoint> virginia_;
};

TEST_F(LinkOpeningTest, RefusesACertificateOfAnotherCa) {
  start_frankfurt();
  EndpointOptions changed = virginias();
  changed.config.security.directory = temporary_.path() + "/other";
  make_keys(changed.config.security.directory, "mnist");
  start_virginia(std::move(changed));
  expect_refusal("refused a connection", "certificate of frankfurt is not signed by this job's CA (" +
                                             temporary_.path() + "/other/ca.pem)");
  EXPECT_GE(frankfurt_->refused_strangers(), 1u);
}

// The dialer trusts the acceptor, but not the other way round: it learns so from a TLS alert.
TEST_F(LinkOpeningTest, TellsADialerThatItsOwnCertificateIsRefused) {
  start_frankfurt();
  const std::string mixed = temporary_.path() + "/mixed";
  make_keys(mixed, "mnist");
  std::filesystem::copy_file(config_.security.directory + "/ca.pem", mixed + "/ca.pem",
                             std::filesystem::copy_options::overwrite_existing);
  EndpointOptions changed = virginias();
  changed.config.security.directory = mixed;
  start_virginia(std::move(changed));
  expect_refusal(
      "certificate of virginia is not signed by this job's CA (" + config_.security.directory + "/ca.pem)",
      "our certificate is refused");
}

TEST_F(LinkOpeningTest, RefusesACertificateOfAnotherRegion) {
  start_frankfurt();
  const std::string borrowed = temporary_.path() + "/borrowed";
  std::filesystem::copy(config_.security.directory, borrowed);
  for (const char* suffix : {".pem", ".key"})
    std::filesystem::copy_file(borrowed + "/oslo" + suffix, borrowed + "/virginia" + suffix,
                               std::filesystem::copy_options::overwrite_existing);
  EndpointOptions changed = virginias();
  changed.config.security.directory = borrowed;
  start_virginia(std::move(changed));
  expect_refusal("certificate of oslo does not prove to be region virginia",
                 "frankfurt refuses us: certificate of oslo does not prove to be region virginia");
}

TEST_F(LinkOpeningTest, RefusesAnotherJob) {
  start_frankfurt();
  EndpointOptions changed = virginias();
  changed.config.job = "charlm";
  start_virginia(std::move(changed));
  // With this job's keys the dialer itself sees that frankfurt's certificate is of another job.
  EXPECT_TRUE(
      heard_in_virginia_.wait_refusal("certificate of frankfurt belongs to job 'mnist', not to 'charlm'"));
}

TEST_F(LinkOpeningTest, RefusesAnotherJobWithoutTls) {
  config_.security.plaintext = true;
  start_frankfurt();
  EndpointOptions changed = virginias();
  changed.config.job = "charlm";
  start_virginia(std::move(changed));
  expect_refusal("this is job 'mnist', not 'charlm'",
                 "frankfurt refuses us: this is job 'mnist', not 'charlm'");
}

TEST_F(LinkOpeningTest, RefusesAnotherLayoutAndNamesTheDifference) {
  start_frankfurt();
  EndpointOptions changed = virginias();
  changed.layout = *core::Layout::create({{"weight", {90, 8}}}, 64);
  const std::string difference = core::Layout::difference(layout_, changed.layout);
  ASSERT_FALSE(difference.empty());
  start_virginia(std::move(changed));
  expect_refusal(difference,
                 "frankfurt refuses us: layouts differ (here is frankfurt, there virginia): " + difference);
}

TEST_F(LinkOpeningTest, RefusesAnOlderLifeOfAPeer) {
  start_frankfurt();
  EndpointOptions newer = virginias();
  newer.incarnation = 5;
  start_virginia(std::move(newer));
  ASSERT_TRUE(heard_in_virginia_.wait_up(kFrankfurt));
  virginia_.reset();
  EndpointOptions older = virginias();
  older.incarnation = 4;
  start_virginia(std::move(older));
  EXPECT_TRUE(heard_in_virginia_.wait_refusal("incarnation 4 of virginia is an older life: 5 was here"));
  EXPECT_TRUE(heard_in_frankfurt_.wait_refusal("incarnation 4 of virginia is an older life"));
  EXPECT_EQ(heard_in_frankfurt_.heard().incarnations[kVirginia], 5u);
}

TEST_F(LinkOpeningTest, RefusesAnotherWireVersion) {
  start_frankfurt();
  RawPeer peer(config_.security, frankfurt_->port());
  auto header = proto::encode_header(hello());
  header[4] = std::byte{9};
  peer.send(header.data(), header.size());
  const auto answer = peer.receive();
  ASSERT_TRUE(answer && answer->kind == proto::Kind::kRefuse);
  const auto refuse = proto::parse_meta<proto::Refuse>(*answer);
  ASSERT_TRUE(refuse.ok());
  EXPECT_EQ(refuse->reason(), proto::REFUSE_VERSION);
  EXPECT_EQ(refuse->text(), "wire version 9; this side speaks 1");
  EXPECT_FALSE(peer.receive().has_value());  // And closed.
  EXPECT_TRUE(heard_in_frankfurt_.wait_refusal("wire version 9; this side speaks 1"));
}

TEST_F(LinkOpeningTest, RefusesALinkThatDoesNotBeginWithAHello) {
  start_frankfurt();
  RawPeer peer(config_.security, frankfurt_->port());
  peer.send(proto::make_message(proto::Kind::kLinkHeartbeat, 0, proto::LinkHeartbeat()));
  const auto answer = peer.receive();
  ASSERT_TRUE(answer && answer->kind == proto::Kind::kRefuse);
  EXPECT_EQ(frankfurt_->links()[0].refused, 1u);
}

TEST_F(LinkOpeningTest, CountsThoseWhoDoNotEvenSpeakTls) {
  start_frankfurt();
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), frankfurt_->port()});
  asio::write(socket, asio::buffer(std::string("GET / HTTP/1.1\r\nHost: frankfurt\r\n\r\n")));
  EXPECT_TRUE(heard_in_frankfurt_.wait_log("refused a connection: TLS"));
  EXPECT_EQ(frankfurt_->refused_strangers(), 1u);
}

// On a stream that has been admitted: it is closed, counted, and said; the endpoint serves the next one.
TEST_F(LinkOpeningTest, EndsAStreamThatBringsGarbage) {
  start_frankfurt();
  auto peer = admitted_peer();
  const std::string garbage(64, 'x');
  peer->send(garbage.data(), garbage.size());
  EXPECT_FALSE(peer->receive().has_value());
  ASSERT_TRUE(heard_in_frankfurt_.wait_down(kVirginia));
  const Status why = heard_in_frankfurt_.heard().down_reasons[0];
  EXPECT_EQ(why.code(), ErrorCode::kProtocol);
  EXPECT_EQ(why.message(), "not an Isthmus frame");
  EXPECT_EQ(frankfurt_->links()[0].refused, 1u);
  EXPECT_TRUE(heard_in_frankfurt_.heard().refusals.empty());  // It belongs to us all the same.
  start_virginia(virginias());
  EXPECT_TRUE(heard_in_virginia_.wait_up(kFrankfurt));
}

TEST_F(LinkOpeningTest, EndsAStreamWhoseFrameIsAbsurdlyLongBeforeAllocating) {
  start_frankfurt();
  auto peer = admitted_peer();
  auto header = proto::encode_header(message(0, 0, 0));
  for (std::size_t i = 16; i < 23; ++i) header[i] = std::byte{0xff};  // 2^56 - 1 bytes of payload.
  peer->send(header.data(), header.size());
  EXPECT_FALSE(peer->receive().has_value());
  ASSERT_TRUE(heard_in_frankfurt_.wait_down(kVirginia));
  EXPECT_NE(
      heard_in_frankfurt_.heard().down_reasons[0].message().find("72057594037927935 bytes is over the limit"),
      std::string::npos);
  EXPECT_EQ(frankfurt_->links()[0].refused, 1u);
  EXPECT_TRUE(heard_in_frankfurt_.wait_log("is over the limit"));
}

TEST_F(LinkOpeningTest, EndsAStreamWhoseFrameIsDamagedOrOutOfPlace) {
  start_frankfurt();
  proto::Message contribution = message(0, 0, 0);
  auto peer = admitted_peer();
  const auto header = proto::encode_header(contribution);
  peer->send(header.data(), header.size());
  peer->send("1", 1);  // The checksum was of "0".
  EXPECT_FALSE(peer->receive().has_value());
  ASSERT_TRUE(heard_in_frankfurt_.wait_down(kVirginia));
  EXPECT_EQ(heard_in_frankfurt_.heard().down_reasons[0].code(), ErrorCode::kCorruption);

  peer = admitted_peer();
  contribution.kind = proto::Kind::kPushPull;
  peer->send(contribution);
  EXPECT_FALSE(peer->receive().has_value());
  ASSERT_TRUE(heard_in_frankfurt_.wait_down(kVirginia, 2));
  EXPECT_EQ(heard_in_frankfurt_.heard().down_reasons[1].message(), "'push-pull' on an open stream");
  EXPECT_TRUE(heard_in_frankfurt_.heard().messages.empty());
}

}  // namespace
}  // namespace isthmus::wan
