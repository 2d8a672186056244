#include "isthmus/client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "tests/worker/fake_shards.h"

namespace isthmus {
namespace {

using namespace std::chrono_literals;
using proto::Kind;
using proto::Message;
using testing::FakeShards;

const std::vector<TensorSpec> kTensors = {{"weight", {2, 3}}, {"bias", {3}}, {"scale", {}}};

std::unique_ptr<Client> connect(const ClientConfig& config) {
  auto client = Client::connect(config);
  EXPECT_TRUE(client.ok()) << client.status().to_string();
  return client.ok() ? std::move(*client) : nullptr;
}

// A value for each tensor, and what the client is to be given.
struct Model {
  explicit Model(float value) {
    for (const TensorSpec& tensor : kTensors) values.emplace_back(tensor.elements(), value);
  }
  std::vector<Gradient> gradients() const {
    std::vector<Gradient> all;
    for (std::uint32_t i = 0; i < values.size(); ++i) all.push_back({{i}, values[i]});
    return all;
  }
  std::vector<Parameters> parameters() {
    std::vector<Parameters> all;
    for (std::uint32_t i = 0; i < values.size(); ++i) all.push_back({{i}, values[i]});
    return all;
  }
  bool all(float value) const {
    for (const auto& tensor : values)
      for (float each : tensor)
        if (each != value) return false;
    return true;
  }
  std::vector<std::vector<float>> values;
};

TEST(ClientTest, PushesPullsAndSteps) {
  FakeShards shards(2);
  auto client = connect(shards.config(kTensors));
  ASSERT_TRUE(client->create(Model(1).gradients()).ok());
  Model model(0);
  ASSERT_TRUE(client->pull(model.parameters()).wait().ok());
  EXPECT_TRUE(model.all(1));
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(client->step(), static_cast<Step>(step));
    ASSERT_TRUE(client->push_pull(Model(2).gradients(), 64, model.parameters()).wait().ok());
    EXPECT_TRUE(model.all(static_cast<float>(3 + 2 * step)));
    ASSERT_TRUE(client->next_step().ok());
  }
  EXPECT_TRUE(client->finish(false).ok());
  EXPECT_TRUE(shards.meta_of<proto::Leave>(0, Kind::kLeave).done());
  client.reset();
  EXPECT_EQ(shards.received(0, Kind::kLeave), 1u);  // Leaving once is enough.
}

TEST(ClientTest, OneMessageAShardCarriesAllTensors) {
  FakeShards shards(2);
  ClientConfig config = shards.config(kTensors);
  config.slice_elements = 2;  // 3 + 2 + 1 slices.
  auto client = connect(config);
  Model model(0);
  ASSERT_TRUE(client->push_pull(Model(1).gradients(), 7, model.parameters()).wait().ok());
  EXPECT_TRUE(model.all(1));
  int pushed = 0;
  for (std::uint32_t shard : {0u, 1u}) {
    EXPECT_EQ(shards.received(shard, Kind::kPushPull), 1u);
    const Message message = shards.wait_for(shard, Kind::kPushPull);
    EXPECT_EQ(message.payload.size(), 1u);  // Small slices lie together.
    const auto meta = proto::parse_meta<proto::PushPull>(message);
    EXPECT_EQ(meta->samples(), 7u);
    EXPECT_EQ(meta->pull_size(), meta->push_size());
    pushed += meta->push_size();
  }
  EXPECT_EQ(pushed, 6);
}

TEST(ClientTest, OnlyNewerSlicesTravelAndOnlyIntoTheSameView) {
  FakeShards shards(1);
  auto client = connect(shards.config(kTensors));
  ASSERT_TRUE(client->create(Model(1).gradients()).ok());
  Model model(0);
  Model other(0);
  ASSERT_TRUE(client->pull(model.parameters()).wait().ok());
  ASSERT_TRUE(client->push(std::vector<Gradient>{Model(1).gradients()[1]}, 1).wait().ok());
  ASSERT_TRUE(client->pull(model.parameters()).wait().ok());
  EXPECT_EQ(model.values[1], std::vector<float>(3, 2));
  EXPECT_EQ(model.values[0], std::vector<float>(6, 1));
  ASSERT_TRUE(client->pull(other.parameters()).wait().ok());
  EXPECT_EQ(other.values, model.values);

  const auto known = [&](std::size_t nth) {
    std::vector<std::uint64_t> versions;
    const auto meta = shards.meta_of<proto::PushPull>(0, Kind::kPushPull, nth);
    for (const auto& pull : meta.pull()) versions.push_back(pull.known_version());
    return versions;
  };
  EXPECT_EQ(known(0), (std::vector<std::uint64_t>{0, 0, 0}));
  EXPECT_EQ(shards.meta_of<proto::PushPull>(0, Kind::kPushPull, 1).computed_from(0), 1u);
  EXPECT_EQ(known(2), (std::vector<std::uint64_t>{1, 1, 1}));
  EXPECT_EQ(known(3), (std::vector<std::uint64_t>{0, 0, 0}));
}

TEST(ClientTest, WaitsForServersThatComeLater) {
  std::vector<std::uint16_t> ports;
  ClientConfig config;
  {
    FakeShards early(2);
    ports = early.ports();
    config = early.config(kTensors);
  }
  std::mutex mutex;
  std::vector<std::string> lines;
  std::promise<void> waited;
  config.log = [&](std::string_view line) {
    std::lock_guard lock(mutex);
    lines.emplace_back(line);
    if (lines.size() == 2) waited.set_value();
  };
  std::optional<FakeShards> late;
  std::jthread server([&] {
    waited.get_future().wait();
    late.emplace(2, ports);
  });
  auto client = connect(config);
  ASSERT_NE(client, nullptr);
  server.join();
  std::lock_guard lock(mutex);
  ASSERT_GE(lines.size(), 2u);
  for (std::size_t i : {0u, 1u}) {
    const std::string line =
        "waiting for shard " + std::to_string(i) + " at 127.0.0.1:" + std::to_string(ports[i]);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), line), 1) << line;
  }
}

TEST(ClientTest, AServerThatNeverComesIsNamed) {
  ClientConfig config;
  {
    FakeShards gone(1);
    config = gone.config(kTensors);
  }
  config.timeout = 50ms;
  const auto client = Client::connect(config);
  EXPECT_EQ(client.status().code(), ErrorCode::kTimeout);
  EXPECT_NE(client.status().message().find("shard 0 at 127.0.0.1:" + std::to_string(config.servers[0].port)),
            std::string::npos)
      << client.status().to_string();
}

TEST(ClientTest, ARefusedHelloEndsConnectWithItsText) {
  FakeShards shards(2);
  shards.on(Kind::kHello, [&](auto shard, auto& from, auto& message) {
    if (shard == 0) return shards.welcome(shard, from, message.request_id);
    shards.refuse(shard, from, message.request_id, proto::REFUSE_JOB, "this is job 'other'");
  });
  const auto client = Client::connect(shards.config(kTensors));
  EXPECT_EQ(client.status().code(), ErrorCode::kRefused);
  EXPECT_NE(client.status().message().find("this is job 'other'"), std::string::npos);
}

TEST(ClientTest, AShardThatIsNotReadyIsAskedAgain) {
  int hellos = 0;
  FakeShards shards(1);
  shards.on(Kind::kHello, [&](auto shard, auto& from, auto& message) {
    if (++hellos == 2) return shards.welcome(shard, from, message.request_id);
    shards.refuse(shard, from, message.request_id, proto::REFUSE_NOT_READY, "not yet");
  });
  EXPECT_NE(connect(shards.config(kTensors)), nullptr);
}

TEST(ClientTest, ALateWorkerStartsWhereTheShardsSay) {
  FakeShards shards(1);
  shards.run([&] { shards.start_step = 41; });
  auto client = connect(shards.config(kTensors));
  EXPECT_EQ(client->step(), 41u);
  ASSERT_TRUE(client->next_step().ok());
  EXPECT_EQ(client->step(), 42u);
  EXPECT_EQ(shards.meta_of<proto::NextStep>(0, Kind::kNextStep).step(), 42u);
}

// What the caller waits for is told with the step; the time between is its own. Sums, not speeds, are judged.
TEST(ClientTest, TellsWhatAStepCost) {
  FakeShards shards(1);
  const auto begun = std::chrono::steady_clock::now();
  auto client = connect(shards.config(kTensors));
  Model model(1);
  ASSERT_TRUE(client->create(model.gradients()).ok());
  ASSERT_TRUE(client->push_pull(model.gradients(), 1, model.parameters()).wait().ok());
  ASSERT_TRUE(client->next_step().ok());
  const auto all =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
  const auto times = shards.meta_of<proto::NextStep>(0, Kind::kNextStep).times();
  EXPECT_GT(times.exchange_us(), 0u);
  EXPECT_GT(times.barrier_us(), 0u) << "create() waited for its answer";
  EXPECT_LE(times.compute_us() + times.encode_us() + times.exchange_us() + times.barrier_us(),
            static_cast<std::uint64_t>(all.count()));
}

TEST(ClientTest, ARefusedGradientIsOneOperationsError) {
  int pushes = 0;
  FakeShards shards(1);
  shards.on(Kind::kPushPull, [&](auto shard, auto& from, auto& message) {
    if (++pushes > 1) return shards.answer_push_pull(shard, from, message);
    shards.refuse(shard, from, message.request_id, proto::REFUSE_NOT_FINITE, "worker 0 pushed NaN in 'bias'");
  });
  ClientConfig config = shards.config(kTensors);
  config.codec = GradientCodec::kInt8;
  auto client = connect(config);
  Model bad(1);
  bad.values[1][2] = std::numeric_limits<float>::quiet_NaN();
  const Status refused = client->push(bad.gradients(), 1).wait();
  EXPECT_EQ(refused.code(), ErrorCode::kRefused);
  EXPECT_NE(refused.message().find("worker 0 pushed NaN in 'bias'"), std::string::npos);
  // The NaN travels as such, int8 or not.
  const Message message = shards.wait_for(0, Kind::kPushPull);
  const auto meta = proto::parse_meta<proto::PushPull>(message);
  EXPECT_EQ(meta->push(0).codec(), 4u);
  ASSERT_EQ(meta->push(1).codec(), 1u);
  float third = 0;
  std::memcpy(&third, message.payload[0].view.data() + meta->push(0).bytes() + 2 * sizeof(float),
              sizeof third);
  EXPECT_TRUE(std::isnan(third));
  EXPECT_TRUE(client->push({}, 1).wait().ok());
  EXPECT_TRUE(client->next_step().ok());
}

TEST(ClientTest, AShardThatForgotUsTakesUsInAgain) {
  FakeShards shards(1);
  auto client = connect(shards.config(kTensors));
  ASSERT_TRUE(client->create(Model(1).gradients()).ok());
  Model model(0);
  ASSERT_TRUE(client->pull(model.parameters()).wait().ok());
  shards.on(Kind::kPushPull, [&](auto shard, auto& from, auto& message) {
    if (shards.received(shard, Kind::kHello) < 2)
      return shards.refuse(shard, from, message.request_id, proto::REFUSE_NOT_MEMBER, "who are you?");
    shards.answer_push_pull(shard, from, message);
  });
  shards.run([&] { shards.start_step = 9; });
  const Status lost = client->push_pull(Model(1).gradients(), 1, model.parameters()).wait();
  EXPECT_EQ(lost.code(), ErrorCode::kUnavailable);
  EXPECT_NE(lost.message().find("lost its lease, rejoined; pull and go on"), std::string::npos)
      << lost.message();
  EXPECT_NE(lost.message().find("shard 0 at 127.0.0.1:"), std::string::npos);
  EXPECT_EQ(client->step(), 9u);
  ASSERT_TRUE(client->pull(model.parameters()).wait().ok());
  const auto again = shards.meta_of<proto::PushPull>(0, Kind::kPushPull, 2);
  EXPECT_EQ(again.pull(0).known_version(), 0u);
  EXPECT_TRUE(model.all(1));
}

TEST(ClientTest, AnEndedLeaseIsNoticedByTheHeartbeat) {
  int heartbeats = 0;
  FakeShards shards(1);
  shards.run([&] { shards.lease_ms = 30; });
  shards.on(Kind::kHeartbeat, [&](auto shard, auto& from, auto& message) {
    if (++heartbeats == 2)
      return shards.refuse(shard, from, message.request_id, proto::REFUSE_NOT_MEMBER, "who are you?");
    shards.send(shard, from, message);
  });
  auto client = connect(shards.config(kTensors));
  (void)shards.wait_for(0, Kind::kHello, 1);
  (void)shards.wait_for(0, Kind::kHeartbeat, 3);  // And its lease is kept again.
  EXPECT_TRUE(client->next_step().ok());
}

TEST(ClientTest, HeartbeatsGoOnWhileABarrierHolds) {
  std::optional<std::pair<transport::PeerName, std::uint64_t>> held;
  FakeShards shards(1);
  shards.run([&] { shards.lease_ms = 30; });
  shards.on(Kind::kNextStep, [&](auto, auto& from, auto& message) { held = {from, message.request_id}; });
  ClientConfig config = shards.config(kTensors);
  config.timeout = 10s;
  auto client = connect(config);
  std::jthread release([&] {
    (void)shards.wait_for(0, Kind::kNextStep);
    const std::size_t before = shards.received(0, Kind::kHeartbeat);
    (void)shards.wait_for(0, Kind::kHeartbeat, before + 3);
    shards.run([&] { shards.send(0, held->first, {Kind::kNextStepReply, held->second, "", {}}); });
  });
  EXPECT_TRUE(client->next_step().ok());
}

TEST(ClientTest, ASilentShardIsNamed) {
  FakeShards shards(2);
  const auto silent_at_1 = [&](auto shard, auto& from, const Message& message) {
    const Kind kind = message.kind == Kind::kNextStep ? Kind::kNextStepReply : message.kind;
    if (shard == 0) shards.send(shard, from, {kind, message.request_id, "", {}});
  };
  shards.on(Kind::kNextStep, silent_at_1);
  shards.on(Kind::kHeartbeat, silent_at_1);
  ClientConfig config = shards.config(kTensors);
  config.timeout = 500ms;
  auto client = connect(config);
  ASSERT_NE(client, nullptr);
  const Status silent = client->next_step();
  EXPECT_EQ(silent.code(), ErrorCode::kTimeout);
  EXPECT_NE(silent.message().find("shard 1 at 127.0.0.1:" + std::to_string(shards.ports()[1])),
            std::string::npos);
  EXPECT_NE(silent.message().find("nothing heard for 500 ms"), std::string::npos) << silent.message();
}

TEST(ClientTest, ABarrierHasItsOwnTimeout) {
  FakeShards shards(1);
  shards.on(Kind::kNextStep, [](auto, auto&, auto&) {});
  ClientConfig config = shards.config(kTensors);
  config.barrier_timeout = 30ms;
  const Status late = connect(config)->next_step();
  EXPECT_EQ(late.code(), ErrorCode::kTimeout);
  EXPECT_NE(late.message().find("next step not answered within 30 ms"), std::string::npos) << late.message();
}

TEST(ClientTest, AStoppedJobCancelsTheNextStep) {
  FakeShards shards(2);
  shards.on(Kind::kNextStep, [&](auto shard, auto& from, auto& message) {
    proto::NextStepReply reply;
    reply.set_stop(shard == 1);
    shards.send(shard, from, proto::make_message(Kind::kNextStepReply, message.request_id, reply));
  });
  auto client = connect(shards.config(kTensors));
  const Status stopped = client->next_step();
  EXPECT_EQ(stopped.code(), ErrorCode::kCancelled);
  EXPECT_EQ(stopped.message(), "the job ends");
  EXPECT_EQ(client->step(), 0u);
  EXPECT_TRUE(client->finish(true).ok());
  EXPECT_TRUE(shards.meta_of<proto::Leave>(1, Kind::kLeave).wait_for_final());
  EXPECT_EQ(client->push({}, 1).wait().code(), ErrorCode::kInvalidArgument);
}

TEST(ClientTest, ACancelledPullLeavesItsViewsAlone) {
  std::vector<std::pair<transport::PeerName, Message>> held;
  FakeShards shards(1);
  auto client = connect(shards.config(kTensors));
  ASSERT_TRUE(client->create(Model(5).gradients()).ok());
  shards.on(Kind::kPushPull, [&](auto, auto& from, auto& message) { held.emplace_back(from, message); });
  {
    Model gone(0);
    Pending pull = client->pull(gone.parameters());
    (void)shards.wait_for(0, Kind::kPushPull);
    EXPECT_FALSE(pull.ready());
  }
  shards.run([&] { shards.answer_push_pull(0, held[0].first, held[0].second); });
  shards.on(Kind::kPushPull,
            [&](auto shard, auto& from, auto& message) { shards.answer_push_pull(shard, from, message); });
  Model model(0);
  ASSERT_TRUE(client->pull(model.parameters()).wait().ok());
  EXPECT_TRUE(model.all(5));
}

TEST(ClientTest, DestructionEndsWhatIsInFlightAndSaysGoodbye) {
  FakeShards shards(1);
  shards.on(Kind::kPushPull, [](auto, auto&, auto&) {});
  auto client = connect(shards.config(kTensors));
  Pending push = client->push(Model(1).gradients(), 1);
  client.reset();
  EXPECT_TRUE(push.ready());
  EXPECT_EQ(push.wait().code(), ErrorCode::kCancelled);
  EXPECT_FALSE(shards.meta_of<proto::Leave>(0, Kind::kLeave).done());
}

TEST(ClientTest, ManyThreadsShareAClient) {
  FakeShards shards(2);
  auto client = connect(shards.config(kTensors));
  ASSERT_TRUE(client->create(Model(0).gradients()).ok());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        Model mine(0);
        for (int j = 0; j < 25; ++j)
          EXPECT_TRUE(client->push_pull(Model(1).gradients(), 1, mine.parameters()).wait().ok());
      });
  }
  Model model(0);
  ASSERT_TRUE(client->pull(model.parameters()).wait().ok());
  EXPECT_TRUE(model.all(100));
}

TEST(ClientTest, RefusesWhatCannotBeSent) {
  FakeShards shards(1);
  auto client = connect(shards.config(kTensors));
  Model model(0);
  std::vector<float> small(2);
  EXPECT_EQ(client->pull(std::vector<Parameters>{{{9}, small}}).wait().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(client->pull(std::vector<Parameters>{{{0}, small}}).wait().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(client->push(model.gradients(), 0).wait().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(client->create(std::vector<Gradient>{model.gradients()[0]}).code(), ErrorCode::kInvalidArgument);
  ClientConfig config = shards.config(kTensors);
  config.max_message_bytes = 39;  // The model has 40.
  EXPECT_EQ(Client::connect(config).status().code(), ErrorCode::kInvalidArgument);
  config.servers.clear();
  EXPECT_EQ(Client::connect(config).status().code(), ErrorCode::kInvalidArgument);
}

TEST(ClientTest, AnObserverLearnsTheTensorsAndReadsTheAnchorsOfOneRound) {
  const core::Layout layout = *core::Layout::create(kTensors, 4);
  const std::vector<std::uint32_t> owner = core::assign_shards(layout, 2);
  std::vector<std::uint64_t> round = {3, 5};
  FakeShards shards(2);
  shards.run([&] { shards.layout = proto::to_table(layout); });
  shards.on(Kind::kSnapshot, [&](auto shard, auto& from, auto& message) {
    const auto asked = proto::parse_meta<proto::Snapshot>(message);
    EXPECT_EQ(asked->source(), proto::SNAPSHOT_ANCHOR);
    proto::SnapshotReply reply;
    reply.set_newest_round(round[shard]);
    reply.set_step(20 + shard);
    if (asked->round() <= round[shard]) {
      reply.set_too_late(true);
      if (asked->round() == 7) round[shard] = 8;
      return shards.send(shard, from, proto::make_message(Kind::kSnapshotReply, message.request_id, reply));
    }
    if (asked->round() == 7 && shard == 1) round[1] = 9;  // Too late by then: the first time.
    Message out{Kind::kSnapshotReply, message.request_id, "", {}};
    if (shard == 1 && asked->round() == 7) {
      reply.set_too_late(true);
      reply.set_newest_round(9);
    } else {
      for (const core::Slice& slice : layout.slices()) {
        if (owner[slice.id] != shard) continue;
        const std::vector<float> values(slice.elements, static_cast<float>(asked->round()));
        auto* record = reply.add_records();
        record->set_slice(slice.id);
        record->set_codec(1);
        record->set_bytes(slice.elements * sizeof(float));
        out.payload.push_back(core::copy_bytes(std::as_bytes(std::span(values))));
      }
    }
    out.meta = reply.SerializeAsString();
    shards.send(shard, from, std::move(out));
  });
  auto observer = Client::observe(shards.config({}));
  ASSERT_TRUE(observer.ok()) << observer.status().to_string();
  EXPECT_EQ(shards.meta_of<proto::Hello>(0, Kind::kHello).role(), proto::ROLE_OBSERVER);
  ASSERT_EQ((*observer)->tensors().size(), 3u);
  EXPECT_EQ((*observer)->tensors()[0], kTensors[0]);
  Model model(0);
  Step step = 0;
  const Status read = (*observer)->snapshot(Snapshot::kShared, model.parameters(), &step);
  ASSERT_TRUE(read.ok()) << read.to_string();
  EXPECT_EQ(step, 20u);
  EXPECT_TRUE(model.all(13));  // 0, 5 + 2, 9 + 4
  EXPECT_EQ((*observer)->next_step().code(), ErrorCode::kInvalidArgument);
  observer->reset();
  EXPECT_EQ(shards.received(0, Kind::kLeave), 0u);
}

}  // namespace
}  // namespace isthmus
