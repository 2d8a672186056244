#include "apps/status.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/command.h"
#include "apps/report.h"
#include "core/config_file.h"
#include "tests/worker/fake_shards.h"

namespace isthmus::apps {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Three servers of one shard each, in two regions of the job "test". `ports` answers for each.
std::string job_text(const std::vector<std::uint16_t>& ports) {
  const auto lan = [&](std::size_t i) { return "{ lan: 127.0.0.1:" + std::to_string(ports[i]); };
  return "job: test\nregions:\n  - { name: near, servers: [" + lan(0) + ", wan: 127.0.0.2:1 }, " + lan(1) +
         ", wan: 127.0.0.2:2 }] }\n  - { name: far, servers: [" + lan(2) + ", wan: 127.0.0.2:3 }] }\n" +
         "security: { plaintext: true }\ntrainer: { model: synthetic, stop: { steps: 10 } }\n";
}

class StatusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "isthmus-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    const std::string text = job_text(shards_.ports());
    path_ = (folder_ / "job.yaml").string();
    std::ofstream(path_) << text;
    auto config = core::parse_config(text, "job.yaml");
    ASSERT_TRUE(config.ok()) << config.status().message();
    config_ = *std::move(config);
    shards_.on(proto::Kind::kStatus, [this](auto shard, auto& from, auto& message) {
      proto::StatusReply reply;
      reply.set_job(shard == other_job_ ? "another" : "test");
      reply.set_region(shard == 2 ? "far" : "near");
      reply.mutable_shard()->set_shard(shard == 2 ? 0 : shard);
      reply.mutable_shard()->set_phase(proto::PHASE_TRAINING);
      reply.mutable_shard()->set_clock(10 + shard);
      if (shard == refusing_)
        return shards_.refuse(shard, from, message.request_id, proto::REFUSE_NOT_READY, "starting");
      shards_.send(shard, from, proto::make_message(proto::Kind::kStatusReply, message.request_id, reply));
    });
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // The verb's exit code and what it printed.
  std::pair<int, std::string> run(std::vector<std::string> words) {
    words.insert(words.begin(), path_);
    ::testing::internal::CaptureStdout();
    const int code = run_status(words);
    return {code, ::testing::internal::GetCapturedStdout()};
  }

  static constexpr std::uint32_t kNone = 99;
  std::atomic<std::uint32_t> other_job_ = kNone;  // Read by the fake shards' thread.
  std::atomic<std::uint32_t> refusing_ = kNone;
  isthmus::testing::FakeShards shards_{3};
  fs::path folder_;
  std::string path_;
  core::JobConfig config_;
};

TEST_F(StatusTest, AsksEveryShardOfEveryRegion) {
  const StatusView view = look_at_job(config_, "", 20s);
  EXPECT_EQ(view.job, "test");
  EXPECT_EQ(view.status.answered, 3u);
  EXPECT_TRUE(view.silent.empty());
  EXPECT_EQ(view.status.regions[0].shards[1].says->clock(), 11u);
  EXPECT_EQ(view.status.regions[1].clock, 12u);
}

TEST_F(StatusTest, AsksOneRegion) {
  const StatusView view = look_at_job(config_, "far", 20s);
  EXPECT_EQ(view.status.answered, 1u);
  EXPECT_EQ(shards_.received(0, proto::Kind::kStatus), 0u);
  EXPECT_EQ(shards_.received(2, proto::Kind::kStatus), 1u);
}

TEST_F(StatusTest, WhoRefusesOrIsOfAnotherJobIsSilent) {
  refusing_ = 1;
  other_job_ = 2;
  const StatusView view = look_at_job(config_, "", 20s);
  EXPECT_EQ(view.status.answered, 1u);
  ASSERT_EQ(view.silent.size(), 2u);
  EXPECT_EQ(view.silent[0].first, "near/1");
  EXPECT_NE(view.silent[0].second.find("starting"), std::string::npos) << view.silent[0].second;
  EXPECT_EQ(view.silent[1].first, "far/0");
  EXPECT_NE(view.silent[1].second.find("of job 'another'"), std::string::npos) << view.silent[1].second;
}

TEST_F(StatusTest, IsAVerb) {
  const auto [code, text] = run({});
  EXPECT_EQ(code, kExitOk);
  EXPECT_NE(text.find("job test: training, step 10"), std::string::npos) << text;
  const auto [json_code, json] = run({"--json", "--region", "far"});
  EXPECT_EQ(json_code, kExitOk);
  EXPECT_EQ(nlohmann::json::parse(json)["step"], 12);
}

TEST_F(StatusTest, NobodyThereIsACodeOfItsOwn) {
  refusing_ = 2;
  const auto [code, text] = run({"--region", "far"});
  EXPECT_EQ(code, kExitConnection);
  EXPECT_NE(text.find("no shard answers"), std::string::npos) << text;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run({"--region", "rio"}).first, kExitUsage);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("no region 'rio'"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::apps
