#include "wan/link_handshake.h"

#include <gtest/gtest.h>

#include "proto/meta.h"

namespace isthmus::wan {
namespace {

core::Layout layout_of(std::uint64_t rows) {
  return *core::Layout::create({{"bias", {10}}, {"weight", {rows, 8}}}, 64);
}

core::JobConfig three_regions() {
  core::JobConfig config;
  config.job = "mnist";
  for (const char* name : {"frankfurt", "virginia", "oslo"}) {
    core::RegionConfig region;
    region.name = name;
    region.servers.resize(region.name == "oslo" ? 2 : 1);
    config.regions.push_back(region);
  }
  config.links.streams = 4;
  return config;
}

// Virginia, as frankfurt and oslo see it.
class LinkHandshakeTest : public testing::Test {
 protected:
  // What frankfurt says to a hello of virginia's that `change` has changed.
  Refusal refusal(const std::function<void(proto::LinkHello&)>& change,
                  std::optional<Identity> certificate = Identity{"virginia", "mnist"}) {
    proto::LinkHello hello = make_hello(virginia_, 77, 2, 5);
    change(hello);
    const auto verdict = check_hello(frankfurt_, hello, certificate);
    EXPECT_TRUE(std::holds_alternative<Refusal>(verdict));
    return std::holds_alternative<Refusal>(verdict) ? std::get<Refusal>(verdict) : Refusal{};
  }

  core::JobConfig config_ = three_regions();
  core::Layout layout_ = layout_of(100);
  LocalSide frankfurt_{config_, layout_, 0, 0, 3};
  LocalSide virginia_{config_, layout_, 1, 0, 9};
};

TEST_F(LinkHandshakeTest, AdmitsThePeerThatItsConfigAndCertificateName) {
  const proto::LinkHello hello = make_hello(virginia_, 77, 2, 5);
  EXPECT_EQ(hello.link_id(), 77u);
  for (const auto& certificate : {std::optional(Identity{"virginia", "mnist"}), std::optional<Identity>()}) {
    const auto verdict = check_hello(frankfurt_, hello, certificate);
    ASSERT_TRUE(std::holds_alternative<Admission>(verdict));
    const auto& admission = std::get<Admission>(verdict);
    EXPECT_EQ(admission.peer, (Peer{1, 0}));
    EXPECT_EQ(admission.stream, 2u);
    EXPECT_EQ(admission.incarnation, 9u);
    EXPECT_EQ(admission.clock, 5u);
  }
}

TEST_F(LinkHandshakeTest, RefusesAnotherJob) {
  const Refusal other = refusal([](proto::LinkHello& hello) { hello.set_job("charlm"); });
  EXPECT_EQ(other.reason, proto::REFUSE_JOB);
  EXPECT_EQ(other.text, "this is job 'mnist', not 'charlm'");
  const Refusal certificate = refusal([](proto::LinkHello&) {}, Identity{"virginia", "charlm"});
  EXPECT_EQ(certificate.reason, proto::REFUSE_JOB);
  EXPECT_EQ(certificate.text, "certificate of virginia belongs to job 'charlm', not to 'mnist'");
}

TEST_F(LinkHandshakeTest, RefusesARegionThatTheCertificateDoesNotProve) {
  const Refusal claimed = refusal([](proto::LinkHello&) {}, Identity{"oslo", "mnist"});
  EXPECT_EQ(claimed.reason, proto::REFUSE_REGION);
  EXPECT_EQ(claimed.text, "certificate of oslo does not prove to be region virginia");
}

TEST_F(LinkHandshakeTest, RefusesWhomItsConfigDoesNotKnow) {
  EXPECT_EQ(refusal([](proto::LinkHello& hello) { hello.set_region("paris"); }, std::nullopt).reason,
            proto::REFUSE_REGION);
  EXPECT_EQ(refusal([](proto::LinkHello& hello) { hello.set_server(1); }).text,
            "region virginia has no server 1 in the config of frankfurt");
  EXPECT_EQ(refusal([](proto::LinkHello& hello) { hello.set_region("frankfurt"); }, std::nullopt).reason,
            proto::REFUSE_REGION);  // Itself, or a config in another order.
}

TEST_F(LinkHandshakeTest, RefusesAnotherLayoutAndNamesTheDifference) {
  const core::Layout other = layout_of(90);
  const LocalSide virginia{config_, other, 1, 0, 9};
  const auto verdict = check_hello(frankfurt_, make_hello(virginia, 1, 0, 0), std::nullopt);
  ASSERT_TRUE(std::holds_alternative<Refusal>(verdict));
  EXPECT_EQ(std::get<Refusal>(verdict).reason, proto::REFUSE_LAYOUT);
  EXPECT_EQ(std::get<Refusal>(verdict).text, "layouts differ (here is frankfurt, there virginia): " +
                                                 core::Layout::difference(layout_, other));
  // Tables are hostile too.
  EXPECT_EQ(refusal([](proto::LinkHello& hello) {
              hello.set_layout_hash(1);
              hello.mutable_layout()->mutable_tensors(0)->set_shape(0, 0);
            }).reason,
            proto::REFUSE_LAYOUT);
}

TEST_F(LinkHandshakeTest, RefusesAnotherNumberOfStreams) {
  EXPECT_EQ(refusal([](proto::LinkHello& hello) { hello.set_streams(2); }).text,
            "links.streams is 4 in frankfurt and 2 in virginia");
  EXPECT_EQ(refusal([](proto::LinkHello& hello) { hello.set_stream(4); }).reason, proto::REFUSE_BAD_REQUEST);
}

TEST_F(LinkHandshakeTest, TheDialerChecksWhoAnswers) {
  EXPECT_FALSE(check_certificate(virginia_, {0, 0}, {"frankfurt", "mnist"}).has_value());
  EXPECT_TRUE(check_certificate(virginia_, {0, 0}, {"oslo", "mnist"}).has_value());
  EXPECT_TRUE(check_certificate(virginia_, {0, 0}, {"frankfurt", "charlm"}).has_value());

  const auto welcome = check_welcome(virginia_, {0, 0}, make_welcome(frankfurt_, 8));
  ASSERT_TRUE(std::holds_alternative<Admission>(welcome));
  EXPECT_EQ(std::get<Admission>(welcome).incarnation, 3u);
  EXPECT_EQ(std::get<Admission>(welcome).clock, 8u);
  const LocalSide oslo{config_, layout_, 2, 1, 1};
  const auto wrong = check_welcome(oslo, {1, 0}, make_welcome(frankfurt_, 8));
  ASSERT_TRUE(std::holds_alternative<Refusal>(wrong));
  EXPECT_EQ(std::get<Refusal>(wrong).text,
            "dialed virginia, but server 0 of region 'frankfurt' answers there");
}

TEST_F(LinkHandshakeTest, RefusesAnOlderLife) {
  EXPECT_FALSE(check_incarnation("oslo", 4, 4).has_value());
  EXPECT_FALSE(check_incarnation("oslo", 4, 5).has_value());
  const auto older = check_incarnation("oslo", 4, 3);
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(older->reason, proto::REFUSE_EPOCH);
  EXPECT_EQ(older->text, "incarnation 3 of oslo is an older life: 4 was here");
}

TEST_F(LinkHandshakeTest, NamesAServerOnlyWhereThereAreSeveral) {
  EXPECT_EQ(peer_name(config_, {1, 0}), "virginia");
  EXPECT_EQ(peer_name(config_, {2, 1}), "oslo server 1");
}

}  // namespace
}  // namespace isthmus::wan
