#include "apps/check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/command.h"
#include "apps/report.h"
#include "tests/support/tcp.h"

namespace isthmus::apps {
namespace {

namespace fs = std::filesystem;

class CheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "isthmus-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string write(const std::string& text) const {
    const std::string path = (folder_ / "job.yaml").string();
    std::ofstream(path) << text;
    return path;
  }

  fs::path folder_;
};

constexpr const char* kOneRegion = R"(job: one
regions: [{ name: here, workers: 3, servers: [{ lan: 127.0.0.1:7100 }] }]
optimizer: { kind: adam, learning_rate: 0.001 }
trainer: { model: synthetic, synthetic: { tensors: 2, elements: 1000 }, stop: { steps: 10 } }
)";

TEST_F(CheckTest, PrintsThePlan) {
  const auto text = check({.config = write(kOneRegion)});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, R"(job one: 1 region, 1 server, 1 shard, 3 workers
model synthetic: 2 tensors, 2 slices, 2,000 elements

region  server  shard  address         slices  elements
here         0      0  127.0.0.1:7100       2     2,000

region  server  other regions reach it at    memory  parameters  optimizer  workers'  sync  home
here         0  -                          54.7 KiB    15.6 KiB   15.6 KiB  23.4 KiB   0 B   0 B
)");
}

TEST_F(CheckTest, FollowsOverridesAndSpeaksJson) {
  const auto text = check({.config = write(kOneRegion),
                           .overrides = {"trainer.synthetic.tensors=5", "regions[0].servers[0].shards=2"},
                           .json = true});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->find('\n'), text->size() - 1);
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["model"]["elements"], 5000);
  EXPECT_EQ(json["regions"][0]["servers"][0]["shards"].size(), 2u);
  EXPECT_TRUE(json["warnings"].empty());
}

TEST_F(CheckTest, AConfigThatIsWrongIsAnErrorThatSaysWhere) {
  const auto text = check({.config = write(std::string(kOneRegion) + "sink: {}\n")});
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.status().message().find("job.yaml:5"), std::string::npos) << text.status().message();
  EXPECT_EQ(exit_code(text.status()), kExitUsage);
  EXPECT_EQ(exit_code(check({.config = (folder_ / "none.yaml").string()}).status()), kExitUsage);
}

TEST_F(CheckTest, WarnsOfWhatThisMachineLacks) {
  const std::string path = write(kOneRegion);
  const std::vector<std::string> text_model = {
      "trainer={model: charlm, data: {set: text, path: /nowhere/book.txt}, stop: {steps: 10}}"};
  auto text = check({.config = path, .overrides = text_model});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_NE(text->find("warning: trainer.data.path: /nowhere/book.txt is not there"), std::string::npos)
      << *text;

  isthmus::testing::TcpListener taken;
  const std::vector<std::string> port = {"regions[0].servers[0].lan=127.0.0.1:" +
                                         std::to_string(taken.port())};
  text = check({.config = path, .overrides = port});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->find("warning"), std::string::npos) << *text;
  text = check({.config = path, .overrides = port, .ports = true});
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("is taken"), std::string::npos) << *text;
}

TEST_F(CheckTest, AModelOfTheUsersOwnPlansItsProcesses) {
  const auto text =
      check({.config = write(kOneRegion), .overrides = {"trainer={model: custom, stop: {steps: 10}}"}});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_NE(text->find("its workers alone know its tensors"), std::string::npos) << *text;
}

TEST_F(CheckTest, IsAVerb) {
  const std::string path = write(kOneRegion);
  const std::vector<std::string> good = {path, "--set", "trainer.stop.steps=20", "--json"};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_check(good), kExitOk);
  EXPECT_TRUE(nlohmann::json::accept(::testing::internal::GetCapturedStdout()));

  const std::vector<std::string> bad = {path, "--set", "trainer.stop.steps=many"};
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_check(bad), kExitUsage);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("trainer.stop.steps"), std::string::npos);
}

TEST(CheckExamplesTest, TheExampleConfigsPlan) {
  for (const char* name :
       {"quickstart", "cnn", "four-regions", "lockstep", "one-region", "synthetic", "charlm"}) {
    const auto text = check({.config = std::string(ISTHMUS_SOURCE_DIR) + "/configs/" + name + ".yaml"});
    EXPECT_TRUE(text.ok()) << name << ": " << text.status().message();
  }
}

}  // namespace
}  // namespace isthmus::apps
