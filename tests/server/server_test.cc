#include "server/server.h"

#include <cstring>
#include <future>

#include "server/checkpoint_store.h"
#include "tests/server/shard_support.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tcp.h"
#include "tests/wan/temporary_directory.h"
#include "wan/certificates.h"

namespace isthmus::server {
namespace {

using proto::Kind;
using std::chrono::seconds;

std::uint16_t free_port() { return isthmus::testing::TcpListener().port(); }

// Serves on a thread of its own until its job has ended.
class Running {
 public:
  explicit Running(std::unique_ptr<Server> server) : server_(std::move(server)) {
    ended_ = std::async(std::launch::async, [this] { return server_->run(); });
  }
  ~Running() {
    if (ended_.valid()) server_->cancel();
  }
  Server& operator*() { return *server_; }
  // Why run() came back.
  Status end() {
    if (ended_.wait_for(kPatience) != std::future_status::ready) return {ErrorCode::kTimeout, "it goes on"};
    return ended_.get();
  }

 private:
  std::unique_ptr<Server> server_;
  std::future<Status> ended_;
};

class ServerTest : public ::testing::Test {
 protected:
  // A port that was free a moment ago may be taken by now: then all servers start again on others.
  void start(core::JobConfig config) {
    config_ = std::move(config);
    for (int attempt = 0; attempt < 10 && servers_.size() < config_.regions.size(); ++attempt) {
      servers_.clear();
      for (auto& region : config_.regions) {
        for (auto& server : region.servers) {
          server.lan = server.lan_bind = {"127.0.0.1", free_port()};
          server.wan = server.wan_bind = {"127.0.0.1", free_port()};
        }
      }
      for (std::uint32_t region = 0; region < config_.regions.size(); ++region) {
        auto server = Server::start(options(region));
        if (!server.ok()) break;
        servers_.push_back(std::make_unique<Running>(*std::move(server)));
      }
    }
    ASSERT_EQ(servers_.size(), config_.regions.size());
  }
  ServerOptions options(std::uint32_t region) {
    ServerOptions options;
    options.config = config_;
    options.region = region;
    options.layout = known_layout_;
    options.hold = hold_;
    options.linger = linger_;
    return options;
  }
  RawWorker connect(std::uint32_t region, std::uint32_t shard = 0) {
    const std::uint16_t first = config_.regions[region].servers[0].lan.port;
    return {context_, static_cast<std::uint16_t>(first + shard)};
  }
  RawWorker join(std::uint32_t region, std::uint32_t shard = 0) {
    RawWorker worker = connect(region, shard);
    EXPECT_EQ(worker.say(worker.hello_meta(config_, layout_, region)).kind, Kind::kWelcome);
    return worker;
  }
  static std::map<core::SliceId, std::vector<float>> all(float value) {
    return {{0, std::vector<float>(4, value)}, {1, std::vector<float>(4, value)}};
  }

  core::JobConfig config_;
  core::Layout layout_ = layout_of({4, 4});
  std::optional<core::Layout> known_layout_;
  bool hold_ = true;
  core::Duration linger_ = seconds(0);
  transport::Context context_;
  std::vector<std::unique_ptr<Running>> servers_;
};

TEST_F(ServerTest, OneRegionTrainsFromHelloToExit) {
  start(small_job({{1}}));
  RawWorker worker = join(0);
  EXPECT_EQ(worker.reply(worker.ask_initialize(all(10))).kind, Kind::kInitializeReply);
  for (Step step = 0; step < 3; ++step) {
    const auto pushed = worker.ask_push_pull(step, 1, all(1), {{0, 0}});
    EXPECT_EQ(pulled_by(worker.reply(pushed)).values.at(0)[0], 9.0f - static_cast<float>(step));
    EXPECT_EQ(worker.reply(worker.ask_next_step(step + 1)).kind, Kind::kNextStepReply);
  }
  EXPECT_EQ(worker.reply(worker.ask_leave(true, true)).kind, Kind::kLeaveReply);
  const auto final = worker.ask_snapshot(proto::SNAPSHOT_FINAL);
  EXPECT_EQ(snapshot_in(worker.reply(final)).values.at(1)[3], 7.0f);
  EXPECT_EQ(worker.control(proto::CONTROL_EXIT).kind, Kind::kControlReply);
  const Status end = servers_[0]->end();
  EXPECT_TRUE(end.ok()) << end.to_string();
}

TEST_F(ServerTest, EndsByItselfUnlessItIsToBeHeld) {
  hold_ = false;
  start(small_job({{1}}));
  RawWorker worker = join(0);
  (void)worker.ask_leave(true);
  EXPECT_TRUE(servers_[0]->end().ok());
}

TEST_F(ServerTest, AnExitBeforeTheLastSyncIsNoSuccess) {
  start(small_job({{1}}));
  RawWorker observer = connect(0);
  (void)observer.control(proto::CONTROL_EXIT);
  EXPECT_EQ(servers_[0]->end().code(), ErrorCode::kCancelled);
}

TEST_F(ServerTest, CanBeCancelled) {
  start(small_job({{1}}));
  RawWorker worker = join(0);
  (**servers_[0]).cancel();
  EXPECT_EQ(servers_[0]->end().code(), ErrorCode::kCancelled);
}

TEST_F(ServerTest, MayBeAskedToStopTraining) {
  hold_ = false;
  start(small_job({{1}}));
  RawWorker worker = join(0);
  (void)worker.reply(worker.ask_initialize(all(1)));
  (**servers_[0]).request_stop();
  Step step = 0;
  bool stop = false;
  while (!stop && !HasFailure()) {
    const proto::Message answer = worker.reply(worker.ask_next_step(++step));
    ASSERT_EQ(answer.kind, Kind::kNextStepReply);
    stop = proto::parse_meta<proto::NextStepReply>(answer)->stop();
  }
  (void)worker.ask_leave(false);
  EXPECT_TRUE(servers_[0]->end().ok());
}

// ---- Checkpoints.

class ServerCheckpointTest : public ServerTest {
 protected:
  core::JobConfig with_checkpoints(Step every = 1000) {
    core::JobConfig config = small_job({{2}});
    config.checkpoint = core::CheckpointConfig{.directory = folder_.path(), .every_steps = every};
    return config;
  }
  void step(std::vector<RawWorker>& shards, Step step) {
    for (std::uint32_t i = 0; i < 2; ++i)
      (void)pulled_by(shards[i].reply(shards[i].ask_push_pull(step, 1, {{i, {1, 1, 1, 1}}}, {{i, 0}})));
    for (auto& shard : shards)
      EXPECT_EQ(shard.reply(shard.ask_next_step(step + 1)).kind, Kind::kNextStepReply);
  }
  std::vector<RawWorker> join_both() {
    std::vector<RawWorker> shards;
    for (std::uint32_t i = 0; i < 2; ++i) {
      shards.push_back(join(0, i));
      EXPECT_EQ(shards[i].reply(shards[i].ask_initialize({{i, {10, 10, 10, 10}}})).kind,
                Kind::kInitializeReply);
    }
    return shards;
  }
  float value(RawWorker& shard, core::SliceId slice) {
    return snapshot_in(shard.reply(shard.ask_snapshot(proto::SNAPSHOT_PARAMETERS))).values.at(slice)[0];
  }
  // The server as it was, and one that takes its place.
  void restart(Step from_step = ~Step{0}) {
    (**servers_[0]).cancel();
    EXPECT_EQ(servers_[0]->end().code(), ErrorCode::kCancelled);
    servers_.clear();
    ServerOptions again = options(0);
    again.restore_at_most = from_step;
    auto server = Server::start(std::move(again));
    ASSERT_TRUE(server.ok()) << server.status().to_string();
    servers_.push_back(std::make_unique<Running>(*std::move(server)));
  }

  std::optional<Step> newest_step() {
    return CheckpointStore::newest_step(checkpoint_folder(folder_.path(), "r0", 0));
  }

  ScratchFolder folder_;
};

TEST_F(ServerCheckpointTest, ASignalWritesWhatIsAtHandAndARestartGoesOn) {
  start(with_checkpoints());
  auto shards = join_both();
  for (Step each = 0; each < 3; ++each) step(shards, each);
  restart();
  shards = join_both();
  EXPECT_EQ(value(shards[0], 0), 7.0f);
  EXPECT_EQ(value(shards[1], 1), 7.0f);
  step(shards, 3);
  EXPECT_EQ(value(shards[1], 1), 6.0f);
  restart();
  shards = join_both();
  EXPECT_EQ(value(shards[0], 0), 6.0f);
}

TEST_F(ServerCheckpointTest, GoesOnFromTheStepThatItIsTold) {
  start(with_checkpoints(2));
  auto shards = join_both();
  for (Step each = 0; each < 5; ++each) {
    step(shards, each);
    // A disk that is slower than that would leave some out.
    while (newest_step() != (each + 1) / 2 * 2 && !HasFailure()) std::this_thread::yield();
  }
  restart(4);
  shards = join_both();
  EXPECT_EQ(value(shards[0], 0), 6.0f);
}

TEST_F(ServerCheckpointTest, TheEndIsACheckpointToo) {
  start(with_checkpoints());
  auto shards = join_both();
  step(shards, 0);
  for (auto& shard : shards) (void)shard.ask_leave(true);
  for (auto& shard : shards) (void)shard.reply(shard.ask_snapshot(proto::SNAPSHOT_FINAL));
  (void)shards[0].control(proto::CONTROL_EXIT);
  EXPECT_TRUE(servers_[0]->end().ok());
  EXPECT_EQ(newest_step(), 1u);
}

TEST_F(ServerCheckpointTest, ACheckpointOfAnotherConfigIsRefused) {
  start(with_checkpoints());
  auto shards = join_both();
  step(shards, 0);
  (**servers_[0]).cancel();
  (void)servers_[0]->end();
  servers_.clear();
  config_.optimizer.kind = core::OptimizerKind::kAdam;
  const auto other = Server::start(options(0));
  EXPECT_EQ(other.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(other.status().message().find("does not fit: it is of optimizer sgd, and this is adam"),
            std::string::npos)
      << other.status().to_string();
  config_.optimizer.kind = core::OptimizerKind::kSgd;
  known_layout_ = layout_of({4, 5});
  const auto model = Server::start(options(0));
  EXPECT_NE(model.status().message().find("it is of another model"), std::string::npos)
      << model.status().to_string();
}

TEST_F(ServerCheckpointTest, AFolderThatCannotBeWrittenIsNamedBeforeTraining) {
  start(small_job({{2}}));
  folder_.write("file", "");
  config_.checkpoint = core::CheckpointConfig{.directory = folder_ / "file", .every_steps = 1};
  const auto server = Server::start(options(0));
  EXPECT_EQ(server.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(server.status().message().find((folder_ / "file").string()), std::string::npos);
}

TEST_F(ServerTest, ALanPortThatIsTakenIsNamed) {
  start(small_job({{1}}));
  const auto second = Server::start(options(0));
  ASSERT_FALSE(second.ok());
  const std::string port = std::to_string(config_.regions[0].servers[0].lan.port);
  EXPECT_EQ(second.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(second.status().message().find("port " + port + " of 127.0.0.1 is in use"), std::string::npos)
      << second.status().message();
}

TEST_F(ServerTest, AWanPortThatIsTakenIsNamed) {
  const isthmus::testing::TcpListener taken;
  config_ = small_job({{1}, {1}});  // Port 0 of the LAN is any free one.
  config_.regions[0].servers[0].wan_bind = {"127.0.0.1", taken.port()};
  known_layout_ = layout_;
  const auto server = Server::start(options(0));
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(server.status().message().find(std::to_string(taken.port())), std::string::npos)
      << server.status().message();
}

TEST_F(ServerTest, KeysThatAreMissingAreNamed) {
  config_ = small_job({{1}, {1}});
  config_.security = {.directory = "/nonexistent/keys", .plaintext = false};
  known_layout_ = layout_;
  const auto server = Server::start(options(0));
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.status().message().find("/nonexistent/keys"), std::string::npos)
      << server.status().message();
}

// The whole way twice: workers, shards, links, homes, the last sync. The regions' steps add up undivided, so
// that each has to be in the end's values exactly once.
class TwoServersTest : public ServerTest, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr int kSteps = 25;

  core::JobConfig job(bool plaintext) {
    core::JobConfig config = small_job({{1}, {1}});
    config.security = {.directory = keys_.path(), .plaintext = plaintext};
    config.sync.every_steps = 2;
    config.sync.weight = core::RegionWeight::kUndivided;
    config.sync.deadline = std::chrono::milliseconds(20);
    config.compression.wan = {core::CodecKind::kTopk, 0.25};  // One element of a slice's four.
    config.compression.dense_below_elements = 1;
    config.links.heartbeat = std::chrono::milliseconds(50);
    if (!plaintext) {
      const auto made = wan::ensure_keys(keys_.path(), config.job, std::vector<std::string>{"r0", "r1"});
      EXPECT_TRUE(made.ok()) << made.status().to_string();
    }
    return config;
  }
  // What worker `region` pushes in `step`; whole numbers, which add up without rounding.
  static std::map<core::SliceId, std::vector<float>> gradients(std::uint32_t region, int step) {
    std::map<core::SliceId, std::vector<float>> values;
    for (core::SliceId slice = 0; slice < 2; ++slice) {
      for (int i = 0; i < 4; ++i)
        values[slice].push_back(
            static_cast<float>((static_cast<int>(region + 3 * slice) + step * (i + 2)) % 7 - 3));
    }
    return values;
  }

  wan::TemporaryDirectory keys_;
};

TEST_P(TwoServersTest, EndWithTheSameParametersInWhichEveryStepCountsOnce) {
  start(job(GetParam()));
  std::vector<RawWorker> workers;
  for (const std::uint32_t region : {0, 1}) workers.push_back(join(region));
  std::vector<std::uint64_t> asked;
  for (RawWorker& worker : workers) asked.push_back(worker.ask_initialize(all(0)));
  for (std::size_t i : {0, 1}) EXPECT_EQ(workers[i].reply(asked[i]).kind, Kind::kInitializeReply);
  for (int step = 0; step < kSteps; ++step) {
    for (const std::uint32_t region : {0, 1}) {
      RawWorker& worker = workers[region];
      const auto at = static_cast<Step>(step);
      (void)worker.reply(worker.ask_push_pull(at, 1, gradients(region, step), {{0, 0}, {1, 0}}));
      EXPECT_EQ(worker.reply(worker.ask_next_step(at + 1)).kind, Kind::kNextStepReply);
    }
  }
  for (std::size_t i : {0, 1}) asked[i] = workers[i].ask_leave(true, true);
  std::vector<Pulled> final;
  for (std::size_t i : {0, 1}) {
    EXPECT_EQ(workers[i].reply(asked[i]).kind, Kind::kLeaveReply);
    final.push_back(snapshot_in(workers[i].reply(workers[i].ask_snapshot(proto::SNAPSHOT_FINAL))));
    const proto::StatusReply status = workers[i].status();
    ASSERT_EQ(status.links_size(), 1);
    EXPECT_TRUE(status.links(0).up());
    EXPECT_GT(status.links(0).sent_bytes(), 0u);
    EXPECT_EQ(status.shard().checksum_mismatches(), 0u);
  }
  for (core::SliceId slice = 0; slice < 2; ++slice) {
    std::vector<float> expected(4, 0);
    for (int step = 0; step < kSteps; ++step) {
      for (const std::uint32_t region : {0, 1}) {
        const auto pushed = gradients(region, step);
        for (std::size_t i = 0; i < 4; ++i) expected[i] -= pushed.at(slice)[i];
      }
    }
    for (std::size_t i : {0, 1}) EXPECT_EQ(final[i].values.at(slice), expected) << "region " << i;
  }
  for (std::size_t i : {0, 1}) {
    (void)workers[i].control(proto::CONTROL_EXIT);
    const Status end = servers_[i]->end();
    EXPECT_TRUE(end.ok()) << end.to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Links, TwoServersTest, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Plaintext" : "Tls"; });

TEST_F(TwoServersTest, ARegionWithAnotherLayoutIsRefusedAndToldWhy) {
  start(job(true));
  RawWorker here = join(0);
  layout_ = layout_of({4, 3});
  RawWorker there = join(1);
  const Status end = servers_[1]->end();
  EXPECT_EQ(end.code(), ErrorCode::kRefused) << end.to_string();
  EXPECT_NE(end.message().find("tensor 1 is 't1'"), std::string::npos) << end.to_string();
}

}  // namespace
}  // namespace isthmus::server
