#include "worker/operation.h"

#include <gtest/gtest.h>

#include <thread>

#include "proto/meta.h"

namespace isthmus::worker {
namespace {

using proto::Kind;

// A pull of slices 3 and 5 in one part; of slice 3, version 2 is known.
class OperationTest : public ::testing::Test {
 protected:
  using Slices = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

  void SetUp() override {
    operation = std::make_shared<Operation>(Kind::kPushPull, std::chrono::seconds(1), inbox);
    Part part;
    part.targets = {{3, three}, {5, five}};
    part.membership = 8;
    part.push_pull.add_pull()->set_known_version(2);
    part.push_pull.add_pull();
    operation->parts.push_back(std::move(part));
  }
  static proto::Message message_of(
      const std::vector<std::pair<std::uint32_t, std::uint64_t>>& slices_and_versions,
      std::size_t elements = 2, std::uint32_t codec = 1) {
    proto::PushPullReply meta;
    proto::Message message{Kind::kPushPullReply, 1, "", {}};
    for (const auto& [slice, version] : slices_and_versions) {
      const std::vector<float> values(elements, static_cast<float>(slice));
      auto* record = meta.add_records();
      record->set_slice(slice);
      record->set_bytes(elements * sizeof(float));
      record->set_codec(codec);
      meta.add_versions(version);
      message.payload.push_back(core::copy_bytes(std::as_bytes(std::span(values))));
    }
    message.meta = meta.SerializeAsString();
    return message;
  }
  template <typename... Given>
  void reply(const Given&... given) {
    operation->answer(operation->parts[0], message_of(given...));
    operation->end({});
  }

  std::vector<float> three = {0, 0};
  std::vector<float> five = {0, 0};
  std::vector<float> seven = {0, 0};
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>(4);
  OperationPtr operation;
};

TEST_F(OperationTest, WaitDecodesIntoTheViewsAndTellsWhatTheyHold) {
  Pending pending(operation);
  EXPECT_FALSE(pending.ready());
  std::jthread io([&] { reply(Slices{{5, 7}}); });
  ASSERT_TRUE(pending.wait().ok());
  EXPECT_EQ(five, (std::vector<float>{5, 5}));
  EXPECT_EQ(three, (std::vector<float>{0, 0}));  // Not newer.
  const auto command = inbox->try_pop();
  ASSERT_TRUE(command.has_value());
  const auto& held = std::get<Decoded>(*command).slices;
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].version, 2u);
  EXPECT_EQ(held[0].view, three.data());
  EXPECT_EQ(held[1].version, 7u);
  EXPECT_EQ(held[1].membership, 8u);
  EXPECT_EQ(pending.wait().code(), ErrorCode::kInvalidArgument);  // Once only.
}

TEST_F(OperationTest, AnErrorIsGivenAsItIs) {
  operation->end({ErrorCode::kTimeout, "late"});
  Pending pending(operation);
  EXPECT_TRUE(pending.ready());
  EXPECT_EQ(pending.wait().message(), "late");
  EXPECT_FALSE(inbox->try_pop().has_value());
}

TEST_F(OperationTest, LettingGoCancelsOnce) {
  {
    Pending pending(operation);
    Pending moved = std::move(pending);
  }
  const auto command = inbox->try_pop();
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(std::get<Cancel>(*command).operation.lock(), operation);
  EXPECT_FALSE(inbox->try_pop().has_value());
}

TEST_F(OperationTest, RefusesWrongAnswers) {
  const auto code = [&](auto... given) {
    SetUp();
    reply(given...);
    return decode_replies(*operation).status().code();
  };
  EXPECT_EQ(code(Slices{{3, 4}, {5, 1}}), ErrorCode::kOk);
  EXPECT_EQ(code(Slices{{3, 4}}), ErrorCode::kProtocol);            // 5 is missing.
  EXPECT_EQ(code(Slices{{5, 1}, {4, 1}}), ErrorCode::kProtocol);    // Nobody asked.
  EXPECT_EQ(code(Slices{{5, 1}, {5, 2}}), ErrorCode::kProtocol);    // Twice.
  EXPECT_EQ(code(Slices{{5, 0}}), ErrorCode::kProtocol);            // No version.
  EXPECT_EQ(code(Slices{{5, 1}}, 3u), ErrorCode::kCorruption);      // Another size.
  EXPECT_EQ(code(Slices{{5, 1}}, 2u, 77u), ErrorCode::kProtocol);   // An unknown codec.
  EXPECT_EQ(code(Slices{{5, 1}}, 2u, 257u), ErrorCode::kProtocol);  // Not 1 by way of a narrow cast.
  const auto code_of = [&](proto::Message answer) {
    SetUp();
    operation->answer(operation->parts[0], std::move(answer));
    operation->end({});
    return decode_replies(*operation).status().code();
  };
  proto::Message answer = message_of(Slices{{3, 4}, {5, 1}});
  answer.payload.clear();
  EXPECT_EQ(code_of(answer), ErrorCode::kProtocol);
  answer.meta = "\xff";
  EXPECT_EQ(code_of(answer), ErrorCode::kProtocol);
}

// What has come can be decoded before the rest is there, in whatever order it comes.
TEST_F(OperationTest, GivesEachAnswerAsItComes) {
  Part part;
  part.targets = {{7, seven}};
  part.push_pull.add_pull();
  operation->parts.push_back(std::move(part));
  operation->answer(operation->parts[1], message_of(Slices{{7, 1}}));
  EXPECT_FALSE(operation->all_answered());
  EXPECT_EQ(operation->next_answered(0), &operation->parts[1]);
  std::jthread io([&] {
    operation->answer(operation->parts[0], message_of(Slices{{3, 4}, {5, 1}}));
    EXPECT_TRUE(operation->all_answered());
    operation->end({});
  });
  EXPECT_EQ(operation->next_answered(1), &operation->parts[0]);
  EXPECT_EQ(operation->next_answered(2), nullptr);
  ASSERT_TRUE(Pending(operation).wait().ok());
  EXPECT_EQ(seven, (std::vector<float>{7, 7}));
  EXPECT_EQ(three, (std::vector<float>{3, 3}));
  EXPECT_EQ(std::get<Decoded>(*inbox->try_pop()).slices.size(), 3u);
}

TEST_F(OperationTest, AnEndInTheMidstIsTold) {
  operation->parts.emplace_back();
  operation->answer(operation->parts[0], message_of(Slices{{3, 4}, {5, 1}}));
  std::jthread io([&] { operation->end({ErrorCode::kUnavailable, "gone"}); });
  EXPECT_EQ(Pending(operation).wait().message(), "gone");
}

}  // namespace
}  // namespace isthmus::worker
