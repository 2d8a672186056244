#include "worker/snapshot.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace isthmus::worker {
namespace {

using proto::Kind;
using Reply = proto::SnapshotReply;

// Two shards that hold 3 slices.
class SnapshotTest : public ::testing::Test {
 protected:
  Status read(Snapshot which, Step* step = nullptr) {
    return read_snapshot(
        which, layout, {{{TensorId{0}, first}, {TensorId{1}, second}}},
        [this](const proto::Snapshot& question) -> Result<std::vector<proto::Message>> {
          questions.push_back(question);
          std::vector<proto::Message> messages;
          for (std::uint32_t shard : {0u, 1u}) messages.push_back(answer(shard, question));
          return messages;
        },
        step);
  }
  // Every slice of the shard, filled with `value`.
  proto::Message full(std::uint32_t shard, float value, Reply reply = {}) {
    proto::Message message{Kind::kSnapshotReply, 1, "", {}};
    for (const core::Slice& slice : layout.layout().slices()) {
      if (layout.shard_of(slice.id) != shard) continue;
      const std::vector<float> values(slice.elements, value);
      auto* record = reply.add_records();
      record->set_slice(slice.id);
      record->set_codec(1);
      record->set_bytes(values.size() * sizeof(float));
      message.payload.push_back(core::copy_bytes(std::as_bytes(std::span(values))));
    }
    message.meta = reply.SerializeAsString();
    return message;
  }
  static proto::Message too_late(std::uint64_t newest) {
    Reply reply;
    reply.set_too_late(true);
    reply.set_newest_round(newest);
    return proto::make_message(Kind::kSnapshotReply, 1, reply);
  }
  std::vector<std::uint64_t> rounds() const {
    std::vector<std::uint64_t> all;
    for (const auto& question : questions) all.push_back(question.round());
    return all;
  }

  ShardedLayout layout{*core::Layout::create({{"first", {4}}, {"second", {2}}}, 2), 2};
  std::vector<float> first = std::vector<float>(4);
  std::vector<float> second = std::vector<float>(2);
  std::vector<proto::Snapshot> questions;
  std::function<proto::Message(std::uint32_t, const proto::Snapshot&)> answer =
      [this](std::uint32_t shard, const proto::Snapshot&) {
        Reply reply;
        reply.set_step(10 - shard);
        return full(shard, static_cast<float>(1 + shard), reply);
      };
};

TEST_F(SnapshotTest, ReadsAllSlicesInOneQuestion) {
  for (const auto& [which, source] : {std::pair{Snapshot::kParameters, proto::SNAPSHOT_PARAMETERS},
                                      {Snapshot::kFinal, proto::SNAPSHOT_FINAL},
                                      {Snapshot::kOwnBeforeFinal, proto::SNAPSHOT_OWN}}) {
    questions.clear();
    Step step = 0;
    ASSERT_TRUE(read(which, &step).ok());
    EXPECT_EQ(questions.size(), 1u);
    EXPECT_EQ(questions[0].source(), source);
    EXPECT_EQ(step, 9u);
  }
  for (const core::Slice& slice : layout.layout().slices()) {
    const auto& values = slice.tensor.value == 0 ? first : second;
    for (std::uint64_t i = 0; i < slice.elements; ++i)
      EXPECT_EQ(values[slice.offset + i], static_cast<float>(1 + layout.shard_of(slice.id)));
  }
}

TEST_F(SnapshotTest, AsksUntilAllShardsAnswerForOneRound) {
  answer = [this](std::uint32_t shard, const proto::Snapshot& question) {
    EXPECT_EQ(question.source(), proto::SNAPSHOT_ANCHOR);
    if (question.round() == 0) return too_late(shard == 0 ? 6 : 8);
    if (question.round() == 10 && shard == 1) return too_late(11);
    return full(shard, static_cast<float>(question.round()));
  };
  ASSERT_TRUE(read(Snapshot::kShared).ok());
  EXPECT_EQ(rounds(), (std::vector<std::uint64_t>{0, 10, 15}));
  EXPECT_EQ(first, std::vector<float>(4, 15));
}

TEST_F(SnapshotTest, OneRegionAnswersAtOnce) {
  ASSERT_TRUE(read(Snapshot::kShared).ok());
  EXPECT_EQ(rounds(), (std::vector<std::uint64_t>{0}));
}

TEST_F(SnapshotTest, GivesUpOnRoundsThatRunAway) {
  answer = [](std::uint32_t, const proto::Snapshot& question) { return too_late(question.round() + 1000); };
  EXPECT_EQ(read(Snapshot::kShared).code(), ErrorCode::kUnavailable);
  EXPECT_LT(questions.size(), 20u);
  answer = [](std::uint32_t, const proto::Snapshot&) { return too_late(~std::uint64_t{0}); };
  EXPECT_EQ(read(Snapshot::kShared).code(), ErrorCode::kUnavailable);
}

TEST_F(SnapshotTest, RefusesWrongAnswers) {
  const auto code = [&](std::function<void(std::uint32_t, proto::Message&, Reply&)> damage) {
    answer = [=, this](std::uint32_t shard, const proto::Snapshot&) {
      proto::Message message = full(shard, 1);
      Reply meta = *proto::parse_meta<Reply>(message);
      damage(shard, message, meta);
      message.meta = meta.SerializeAsString();
      return message;
    };
    return read(Snapshot::kParameters).code();
  };
  EXPECT_EQ(code([](auto, auto&, auto&) {}), ErrorCode::kOk);
  EXPECT_EQ(code([](auto shard, auto& message, auto& meta) {
              if (shard == 1) return;
              message.payload.clear();
              meta.clear_records();
            }),
            ErrorCode::kProtocol);
  EXPECT_EQ(code([](auto, auto&, auto& meta) { meta.mutable_records(0)->set_slice(99); }),
            ErrorCode::kProtocol);
  EXPECT_EQ(code([](auto, auto&, auto& meta) { meta.mutable_records(0)->set_codec(99); }),
            ErrorCode::kProtocol);
  EXPECT_EQ(code([](auto, auto&, auto& meta) { meta.mutable_records(0)->set_bytes(1); }),
            ErrorCode::kProtocol);
  std::vector<float> wrong(3);
  EXPECT_EQ(read_snapshot(Snapshot::kFinal, layout, {{{TensorId{0}, wrong}}}, nullptr, nullptr).code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus::worker
