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
  void SetUp() override {
    Part part;
    part.targets = {{3, three}, {5, five}};
    part.membership = 8;
    part.push_pull.add_pull()->set_known_version(2);
    part.push_pull.add_pull();
    operation->parts.push_back(std::move(part));
  }
  void reply(std::vector<std::pair<std::uint32_t, std::uint64_t>> slices_and_versions,
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
    operation->parts[0].reply = std::move(message);
    operation->end({});
  }

  std::vector<float> three = {0, 0};
  std::vector<float> five = {0, 0};
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>(4);
  OperationPtr operation = std::make_shared<Operation>(Kind::kPushPull, std::chrono::seconds(1), inbox);
};

TEST_F(OperationTest, WaitDecodesIntoTheViewsAndTellsWhatTheyHold) {
  Pending pending(operation);
  EXPECT_FALSE(pending.ready());
  std::jthread io([&] { reply({{5, 7}}); });
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
    reply(given...);
    return decode_replies(*operation).status().code();
  };
  using Slices = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
  EXPECT_EQ(code(Slices{{3, 4}, {5, 1}}), ErrorCode::kOk);
  EXPECT_EQ(code(Slices{{3, 4}}), ErrorCode::kProtocol);            // 5 is missing.
  EXPECT_EQ(code(Slices{{5, 1}, {4, 1}}), ErrorCode::kProtocol);    // Nobody asked.
  EXPECT_EQ(code(Slices{{5, 1}, {5, 2}}), ErrorCode::kProtocol);    // Twice.
  EXPECT_EQ(code(Slices{{5, 0}}), ErrorCode::kProtocol);            // No version.
  EXPECT_EQ(code(Slices{{5, 1}}, 3u), ErrorCode::kCorruption);      // Another size.
  EXPECT_EQ(code(Slices{{5, 1}}, 2u, 77u), ErrorCode::kProtocol);   // An unknown codec.
  EXPECT_EQ(code(Slices{{5, 1}}, 2u, 257u), ErrorCode::kProtocol);  // Not 1 by way of a narrow cast.
  operation->parts[0].reply.payload.clear();
  EXPECT_EQ(decode_replies(*operation).status().code(), ErrorCode::kProtocol);
  operation->parts[0].reply.meta = "\xff";
  EXPECT_EQ(decode_replies(*operation).status().code(), ErrorCode::kProtocol);
}

}  // namespace
}  // namespace isthmus::worker
