#include "wan/tls.h"

#include <gtest/gtest.h>
#include <openssl/x509_vfy.h>

#include "tests/wan/temporary_directory.h"
#include "wan/certificates.h"

namespace isthmus::wan {
namespace {

using ConnectionHandle = std::unique_ptr<SSL, FreeWith<SSL_free>>;

// Both ends of a handshake in one thread, over memory.
struct Pair {
  ConnectionHandle dialer;
  ConnectionHandle acceptor;

  Pair(SSL_CTX* dialer_context, SSL_CTX* acceptor_context)
      : dialer(SSL_new(dialer_context)), acceptor(SSL_new(acceptor_context)) {
    BIO* left = nullptr;
    BIO* right = nullptr;
    BIO_new_bio_pair(&left, 0, &right, 0);
    SSL_set_bio(dialer.get(), left, left);
    SSL_set_bio(acceptor.get(), right, right);
    SSL_set_connect_state(dialer.get());
    SSL_set_accept_state(acceptor.get());
  }

  // True when both sides are content.
  bool shake() {
    bool dialed = false;
    bool accepted = false;
    for (int turn = 0; turn < 10 && !(dialed && accepted); ++turn) {
      dialed = SSL_do_handshake(dialer.get()) == 1;
      accepted = SSL_do_handshake(acceptor.get()) == 1;
    }
    ERR_clear_error();
    return dialed && accepted;
  }
};

class TlsTest : public testing::Test {
 protected:
  TlsContextHandle context(const std::string& folder, const std::string& region) {
    auto made = make_tls_context({temporary_.path() + folder, false}, region);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? std::move(*made) : nullptr;
  }
  void make_keys(const std::string& folder) {
    const auto made =
        ensure_keys(temporary_.path() + folder, "mnist", std::vector<std::string>{"frankfurt", "virginia"});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
  }
  TemporaryDirectory temporary_;
};

TEST_F(TlsTest, BothSidesLearnWhoTheOtherIs) {
  make_keys("/keys");
  const TlsContextHandle virginia = context("/keys", "virginia");
  const TlsContextHandle frankfurt = context("/keys", "frankfurt");
  Pair pair(virginia.get(), frankfurt.get());
  EXPECT_EQ(peer_identity(pair.dialer.get()), std::nullopt);
  ASSERT_TRUE(pair.shake());
  EXPECT_EQ(SSL_version(pair.dialer.get()), TLS1_3_VERSION);
  EXPECT_EQ(peer_identity(pair.dialer.get()), (Identity{"frankfurt", "mnist"}));
  EXPECT_EQ(peer_identity(pair.acceptor.get()), (Identity{"virginia", "mnist"}));
}

TEST_F(TlsTest, ACertificateOfAnotherCaIsNotTrusted) {
  make_keys("/keys");
  make_keys("/other");
  const TlsContextHandle virginia = context("/other", "virginia");
  const TlsContextHandle frankfurt = context("/keys", "frankfurt");
  Pair pair(virginia.get(), frankfurt.get());
  EXPECT_FALSE(pair.shake());
  const auto error = static_cast<int>(SSL_get_verify_result(pair.dialer.get()));
  EXPECT_EQ(describe_untrusted(error, "frankfurt", "keys/ca.pem"),
            "certificate of frankfurt is not signed by this job's CA (keys/ca.pem)");
}

TEST_F(TlsTest, NobodyIsServedWithoutACertificate) {
  make_keys("/keys");
  const TlsContextHandle frankfurt = context("/keys", "frankfurt");
  const TlsContextHandle stranger(SSL_CTX_new(TLS_method()));
  SSL_CTX_set_verify(stranger.get(), SSL_VERIFY_NONE, nullptr);
  Pair pair(stranger.get(), frankfurt.get());
  EXPECT_FALSE(pair.shake());
}

TEST_F(TlsTest, OlderVersionsOfTlsAreNotSpoken) {
  make_keys("/keys");
  const TlsContextHandle frankfurt = context("/keys", "frankfurt");
  const TlsContextHandle virginia = context("/keys", "virginia");
  ASSERT_EQ(SSL_CTX_set_min_proto_version(virginia.get(), TLS1_2_VERSION), 1);
  ASSERT_EQ(SSL_CTX_set_max_proto_version(virginia.get(), TLS1_2_VERSION), 1);
  Pair pair(virginia.get(), frankfurt.get());
  EXPECT_FALSE(pair.shake());
}

TEST_F(TlsTest, SaysWhichFileIsMissingOrWrong) {
  make_keys("/keys");
  const core::SecurityConfig security{temporary_.path() + "/keys", false};
  const auto missing = make_tls_context(security, "oslo");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.status().message().find("/keys/oslo.pem: no such file"), std::string::npos);

  std::filesystem::copy_file(security.directory + "/frankfurt.key", security.directory + "/virginia.key",
                             std::filesystem::copy_options::overwrite_existing);
  const auto wrong = make_tls_context(security, "virginia");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("/keys/virginia.key"), std::string::npos);
}

TEST(TlsWordsTest, SayWhatIsWrongWithACertificate) {
  EXPECT_NE(
      describe_untrusted(X509_V_ERR_CERT_HAS_EXPIRED, "oslo", "ca").find("certificate of oslo has expired"),
      std::string::npos);
  EXPECT_NE(
      describe_untrusted(X509_V_ERR_INVALID_PURPOSE, "", "ca").find("a peer's certificate is refused: "),
      std::string::npos);
  EXPECT_TRUE(describe_alert(SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA).has_value());
  EXPECT_TRUE(describe_alert(SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_EXPIRED).has_value());
  EXPECT_FALSE(describe_alert(SSL_AD_REASON_OFFSET + SSL_AD_INTERNAL_ERROR).has_value());
  EXPECT_FALSE(describe_alert(SSL_R_HTTP_REQUEST).has_value());
}

}  // namespace
}  // namespace isthmus::wan
