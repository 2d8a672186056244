#include "server/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/server/checkpoint_support.h"
#include "tests/support/scratch_folder.h"

namespace isthmus::server {
namespace {

using Outcome = CheckpointWriter::Outcome;

// The outcomes in their order; each is waited for.
class CheckpointWriterTest : public ::testing::Test {
 protected:
  CheckpointWriterTest() : mailbox_(16) {
    writer_.emplace(*CheckpointStore::open(folder_ / "a-0", 3), [this](Outcome outcome) {
      if (hold_.valid()) hold_.wait();
      ASSERT_TRUE(mailbox_.try_push(outcome));
    });
  }
  Outcome next() {
    while (true) {
      if (auto outcome = mailbox_.try_pop()) return *std::move(outcome);
      std::this_thread::yield();
    }
  }
  bool write(Step step) { return writer_->write(saved_server(checkpoint_job(), step)); }

  ScratchFolder folder_;
  core::Mailbox<Outcome> mailbox_;
  std::shared_future<void> hold_;
  std::optional<CheckpointWriter> writer_;
};

TEST_F(CheckpointWriterTest, WritesOneAfterTheOther) {
  EXPECT_TRUE(writer_->idle());
  EXPECT_TRUE(write(100));
  EXPECT_FALSE(writer_->idle());
  const Outcome first = next();
  EXPECT_EQ(first.step, 100u);
  EXPECT_TRUE(first.folder.ok());
  writer_->written();
  EXPECT_TRUE(writer_->idle());
  EXPECT_TRUE(write(200));
  EXPECT_EQ(next().step, 200u);
}

TEST_F(CheckpointWriterTest, OfThoseThatWaitTheNewestIsWritten) {
  std::promise<void> go;
  hold_ = go.get_future().share();
  EXPECT_TRUE(write(100));
  EXPECT_TRUE(write(200));
  EXPECT_FALSE(write(300));
  go.set_value();
  EXPECT_EQ(next().step, 100u);
  writer_->written();
  EXPECT_FALSE(writer_->idle());
  EXPECT_EQ(next().step, 300u);
  writer_->written();
  EXPECT_TRUE(writer_->idle());
}

TEST_F(CheckpointWriterTest, WhatCannotBeWrittenIsTold) {
  std::filesystem::remove_all(folder_ / "a-0");
  folder_.write("a-0", "a file");
  EXPECT_TRUE(write(100));
  EXPECT_EQ(next().folder.status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(CheckpointWriterTest, TheEndWaitsForTheDisk) {
  EXPECT_TRUE(write(100));
  writer_.reset();
  EXPECT_EQ(CheckpointStore::newest_step(folder_ / "a-0"), 100u);
}

}  // namespace
}  // namespace isthmus::server
