#include "wan/certificates.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "tests/wan/temporary_directory.h"
#include "wan/tls.h"

namespace isthmus::wan {
namespace {

const std::vector<std::string> kTwo = {"frankfurt", "virginia"};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

CertificateHandle certificate_of(const std::string& path) {
  BioHandle file(BIO_new_file(path.c_str(), "r"));
  return CertificateHandle(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
}

// Days from now until it ends.
int days_left(const X509* certificate) {
  int days = 0;
  int seconds = 0;
  EXPECT_EQ(ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)), 1);
  return days;
}

class CertificatesTest : public testing::Test {
 protected:
  TemporaryDirectory temporary_;
  std::string keys_ = temporary_.path() + "/run/keys";
};

TEST_F(CertificatesTest, MakesACaAndACertificateForEachRegion) {
  const auto written = ensure_keys(keys_, "mnist", kTwo);
  ASSERT_TRUE(written.ok()) << written.status().to_string();
  EXPECT_EQ(written->size(), 6u);
  EXPECT_EQ(mode_of(keys_), 0700u);
  for (const char* key : {"/ca.key", "/frankfurt.key", "/virginia.key"})
    EXPECT_EQ(mode_of(keys_ + key), 0600u);

  const CertificateHandle ca = certificate_of(keys_ + "/ca.pem");
  ASSERT_TRUE(ca);
  EXPECT_EQ(X509_check_ca(ca.get()), 1);
  EXPECT_EQ(identity_of(ca.get()).job, "mnist");
  EXPECT_NEAR(days_left(ca.get()), 3650, 1);

  const CertificateHandle leaf = certificate_of(keys_ + "/virginia.pem");
  ASSERT_TRUE(leaf);
  EXPECT_EQ(identity_of(leaf.get()), (Identity{"virginia", "mnist"}));
  EXPECT_NEAR(days_left(leaf.get()), 730, 1);
  EXPECT_EQ(X509_check_ca(leaf.get()), 0);
  EXPECT_EQ(X509_verify(leaf.get(), X509_get0_pubkey(ca.get())), 1);
  EXPECT_EQ(EVP_PKEY_get_bits(X509_get0_pubkey(leaf.get())), 256);
  EXPECT_EQ(EVP_PKEY_get_base_id(X509_get0_pubkey(leaf.get())), EVP_PKEY_EC);
}

TEST_F(CertificatesTest, KeepsWhatIsThereAndAddsWhatIsMissing) {
  ASSERT_TRUE(ensure_keys(keys_, "mnist", kTwo).ok());
  const std::string ca = read(keys_ + "/ca.pem");
  const std::string virginia = read(keys_ + "/virginia.key");

  const auto again = ensure_keys(keys_, "mnist", kTwo);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->empty());

  const auto third = ensure_keys(keys_, "mnist", std::vector<std::string>{"frankfurt", "virginia", "oslo"});
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(*third, (std::vector<std::string>{keys_ + "/oslo.pem", keys_ + "/oslo.key"}));
  EXPECT_EQ(read(keys_ + "/ca.pem"), ca);
  EXPECT_EQ(read(keys_ + "/virginia.key"), virginia);
}

TEST_F(CertificatesTest, ReplacesTheCaOnlyWhenAsked) {
  ASSERT_TRUE(ensure_keys(keys_, "mnist", kTwo).ok());
  const std::string ca = read(keys_ + "/ca.pem");
  const auto replaced = ensure_keys(keys_, "mnist", kTwo, ExistingCa::kReplace);
  ASSERT_TRUE(replaced.ok());
  EXPECT_EQ(replaced->size(), 6u);  // Certificates of the old CA are of no use.
  EXPECT_NE(read(keys_ + "/ca.pem"), ca);
}

TEST_F(CertificatesTest, RemakesACertificateThatTheCaDidNotSign) {
  ASSERT_TRUE(ensure_keys(keys_, "mnist", kTwo).ok());
  const std::string other = temporary_.path() + "/other";
  ASSERT_TRUE(ensure_keys(other, "mnist", kTwo).ok());
  for (const char* file : {"/virginia.pem", "/virginia.key"})
    std::filesystem::copy_file(other + file, keys_ + file, std::filesystem::copy_options::overwrite_existing);
  const auto mended = ensure_keys(keys_, "mnist", kTwo);
  ASSERT_TRUE(mended.ok());
  EXPECT_EQ(*mended, (std::vector<std::string>{keys_ + "/virginia.pem", keys_ + "/virginia.key"}));
}

TEST_F(CertificatesTest, RefusesKeysOfAnotherJob) {
  ASSERT_TRUE(ensure_keys(keys_, "mnist", kTwo).ok());
  const auto other = ensure_keys(keys_, "charlm", kTwo);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(other.status().message().find("ca.pem: belongs to job 'mnist', not 'charlm'"), std::string::npos)
      << other.status().message();
}

TEST_F(CertificatesTest, NeedsTheCasKeyOnlyToSign) {
  ASSERT_TRUE(ensure_keys(keys_, "mnist", kTwo).ok());
  std::filesystem::remove(keys_ + "/ca.key");
  EXPECT_TRUE(ensure_keys(keys_, "mnist", kTwo).ok());
  const auto third = ensure_keys(keys_, "mnist", std::vector<std::string>{"oslo"});
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(third.status().message().find("oslo"), std::string::npos);
}

TEST_F(CertificatesTest, RefusesNamesThatAreNoFilesOrNoCommonNames) {
  for (const std::string name : {"", "ca", "../x", ".hidden"}) {
    const auto made = ensure_keys(keys_, "mnist", std::vector<std::string>{name});
    ASSERT_FALSE(made.ok()) << name;
    EXPECT_EQ(made.status().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(ensure_keys(keys_, std::string(65, 'j'), kTwo).ok());
  EXPECT_TRUE(ensure_keys(keys_, std::string(64, 'j'), std::vector<std::string>{std::string(64, 'r')}).ok());
}

TEST_F(CertificatesTest, NamesTheFolderThatItCannotMake) {
  std::ofstream(temporary_.path() + "/file") << "in the way";
  const auto made = ensure_keys(temporary_.path() + "/file/keys", "mnist", kTwo);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find(temporary_.path() + "/file/keys"), std::string::npos);
}

TEST_F(CertificatesTest, SeveralCallersAtOnceMakeOneCa) {
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] { EXPECT_TRUE(ensure_keys(keys_, "mnist", kTwo).ok()); });
  callers.clear();
  const CertificateHandle ca = certificate_of(keys_ + "/ca.pem");
  const CertificateHandle leaf = certificate_of(keys_ + "/virginia.pem");
  ASSERT_TRUE(ca && leaf);
  EXPECT_EQ(X509_verify(leaf.get(), X509_get0_pubkey(ca.get())), 1);
}

}  // namespace
}  // namespace isthmus::wan
