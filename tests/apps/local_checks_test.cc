#include "apps/local_checks.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/tcp.h"
#include "wan/certificates.h"

namespace isthmus::apps {
namespace {

namespace fs = std::filesystem;

class LocalChecksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "isthmus-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    config_.job = "test";
    config_.regions.resize(2);
    config_.regions[0].name = "frankfurt";
    config_.regions[1].name = "virginia";
    config_.security.directory = (folder_ / "keys").string();
    config_.trainer.model = "synthetic";
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void write(const std::string& name) const { std::ofstream(folder_ / name) << "x"; }

  fs::path folder_;
  core::JobConfig config_;
};

TEST_F(LocalChecksTest, KeysOfEveryRegion) {
  auto problems = find_missing_files(config_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "security.directory");
  EXPECT_NE(problems[0].message.find("frankfurt"), std::string::npos);

  const std::string frankfurt = "frankfurt";
  ASSERT_TRUE(wan::ensure_keys(config_.security.directory, "test", std::span(&frankfurt, 1)).ok());
  problems = find_missing_files(config_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].message.find("virginia"), std::string::npos);

  config_.security.plaintext = true;
  EXPECT_TRUE(find_missing_files(config_).empty());
  config_.security.plaintext = false;
  config_.regions.pop_back();
  config_.security.directory = (folder_ / "none").string();
  EXPECT_TRUE(find_missing_files(config_).empty());
}

TEST_F(LocalChecksTest, ThePicturesPackedOrNot) {
  config_.security.plaintext = true;
  config_.trainer.model = "mlp";
  config_.trainer.data.path = folder_.string();
  write("train-images-idx3-ubyte.gz");
  write("train-labels-idx1-ubyte");
  write("t10k-images-idx3-ubyte.gz");
  const auto problems = find_missing_files(config_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "trainer.data.path");
  EXPECT_NE(problems[0].message.find("t10k-labels-idx1-ubyte is not there"), std::string::npos);
  write("t10k-labels-idx1-ubyte.gz");
  EXPECT_TRUE(find_missing_files(config_).empty());
}

TEST_F(LocalChecksTest, TheText) {
  config_.security.plaintext = true;
  config_.trainer.model = "charlm";
  config_.trainer.data.set = "text";
  config_.trainer.data.path = (folder_ / "book.txt").string();
  ASSERT_EQ(find_missing_files(config_).size(), 1u);
  write("book.txt");
  EXPECT_TRUE(find_missing_files(config_).empty());
  config_.trainer.model = "custom";  // Has its own ideas of data.
  config_.trainer.data.path = "nowhere";
  EXPECT_TRUE(find_missing_files(config_).empty());
}

TEST_F(LocalChecksTest, PortsThatSomebodyHas) {
  isthmus::testing::TcpListener taken;
  config_.regions.pop_back();
  core::ServerConfig& server = config_.regions[0].servers.emplace_back();
  const auto before = static_cast<std::uint16_t>(taken.port() - 1);
  server.shards = 2;
  server.lan_bind = {"127.0.0.2", before};        // The listener has 127.0.0.1 only.
  server.wan_bind = {"192.0.2.1", taken.port()};  // Not of this machine.
  EXPECT_TRUE(find_taken_ports(config_).empty());

  server.wan_bind = {"localhost", taken.port()};
  auto problems = find_taken_ports(config_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "regions[0].servers[0].wan");

  server.wan_bind = {};
  server.lan_bind = {"127.0.0.1", before};
  problems = find_taken_ports(config_);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems.back().key, "regions[0].servers[0].lan");
  EXPECT_NE(problems.back().message.find("127.0.0.1:" + std::to_string(taken.port()) + " is taken"),
            std::string::npos);

  server.lan_bind = {"no.such.name.invalid", taken.port()};
  server.shards = 1;
  EXPECT_TRUE(find_taken_ports(config_).empty());
}

}  // namespace
}  // namespace isthmus::apps
