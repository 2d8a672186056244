#include "server/checkpoint_store.h"

#include <gtest/gtest.h>

#include <set>

#include "server/checkpoint.h"
#include "tests/server/checkpoint_support.h"
#include "tests/support/scratch_folder.h"

namespace isthmus::server {
namespace {

namespace fs = std::filesystem;

constexpr Step kAnyStep = ~Step{0};

class CheckpointStoreTest : public ::testing::Test {
 protected:
  CheckpointStore open(std::uint32_t keep = 3) {
    auto store = CheckpointStore::open(folder_ / "a-0", keep);
    EXPECT_TRUE(store.ok()) << store.status().to_string();
    return *std::move(store);
  }
  void write(const CheckpointStore& store, Step step) {
    const auto folder = store.write(saved_server(checkpoint_job(), step));
    ASSERT_TRUE(folder.ok()) << folder.status().to_string();
  }
  std::set<std::string> names() {
    std::set<std::string> all;
    for (const auto& each : fs::directory_iterator(folder_ / "a-0")) all.insert(each.path().filename());
    return all;
  }
  std::optional<Step> newest(const CheckpointStore& store, Step at_most = kAnyStep) {
    const auto found = store.newest(at_most, [this](const std::string& line) { said_.push_back(line); });
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    if (!found.ok() || !*found) return std::nullopt;
    return (*found)->saved.step();
  }
  void damage(const std::string& name) {
    fs::resize_file(folder_ / "a-0" / name / "shard-1.safetensors", 100);
  }

  ScratchFolder folder_;
  std::vector<std::string> said_;
};

TEST_F(CheckpointStoreTest, AFreshFolderHasNone) {
  const CheckpointStore store = open();
  EXPECT_FALSE(newest(store));
  EXPECT_FALSE(CheckpointStore::newest_step(folder_ / "a-0"));
  EXPECT_FALSE(CheckpointStore::newest_step(folder_ / "missing"));
}

TEST_F(CheckpointStoreTest, KeepsTheNewest) {
  const CheckpointStore store = open(2);
  for (Step step : {100, 200, 300, 400}) write(store, step);
  EXPECT_EQ(names(), (std::set<std::string>{"00000003-step-300", "00000004-step-400"}));
  EXPECT_EQ(newest(store), 400u);
  EXPECT_EQ(CheckpointStore::newest_step(folder_ / "a-0"), 400u);
}

TEST_F(CheckpointStoreTest, ADamagedOneGivesWayToTheOneBeforeIt) {
  const CheckpointStore store = open();
  for (Step step : {100, 200, 300}) write(store, step);
  damage("00000003-step-300");
  EXPECT_EQ(newest(store), 200u);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_NE(said_[0].find("00000003-step-300 is damaged: shard-1.safetensors has 100 bytes"),
            std::string::npos)
      << said_[0];
}

TEST_F(CheckpointStoreTest, WhenNoneIsSoundNothingBeginsAnew) {
  const CheckpointStore store = open();
  for (Step step : {100, 200}) write(store, step);
  damage("00000001-step-100");
  damage("00000002-step-200");
  const auto found = store.newest(kAnyStep, [](const std::string&) {});
  EXPECT_EQ(found.status().code(), ErrorCode::kCorruption);
  EXPECT_NE(found.status().message().find("none is sound"), std::string::npos);
}

// The servers of a job go on from one step; what one of them had written of a later one is of another past.
TEST_F(CheckpointStoreTest, OfAtMostAStep) {
  const CheckpointStore store = open();
  for (Step step : {100, 200, 300}) write(store, step);
  EXPECT_EQ(newest(store, 250), 200u);
  EXPECT_EQ(names(), (std::set<std::string>{"00000001-step-100", "00000002-step-200"}));
  EXPECT_EQ(newest(store), 200u);
  EXPECT_EQ(newest(store, 50), 200u);  // None is so early: then the newest.
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(CheckpointStoreTest, WhatWasLeftHalfDoneIsNoCheckpoint) {
  write(open(), 100);
  fs::create_directories(folder_ / "a-0/00000002-step-200.partial");
  fs::rename(folder_ / "a-0/00000001-step-100", folder_ / "a-0/00000001-step-100.removed");
  fs::create_directories(folder_ / "a-0/notes");
  EXPECT_FALSE(newest(open()));
  EXPECT_EQ(names(), std::set<std::string>{"notes"});
}

TEST_F(CheckpointStoreTest, AWriteThatFailsLeavesWhatThereWas) {
  const CheckpointStore store = open(1);
  write(store, 100);
  SavedServer bad = saved_server(checkpoint_job(), 200);
  bad.layout = *core::Layout::create({{"\xff", {4}}, {"t1", {4}}}, 4);  // No UTF-8.
  EXPECT_EQ(store.write(bad).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(names(), std::set<std::string>{"00000001-step-100"});
  write(store, 300);
  EXPECT_EQ(names(), std::set<std::string>{"00000002-step-300"});
}

TEST_F(CheckpointStoreTest, LivesOnlyGrowWhateverClocksDo) {
  EXPECT_EQ(*open().begin_life(1000), 1000u);
  EXPECT_EQ(*open().begin_life(2000), 2000u);
  EXPECT_EQ(*open().begin_life(500), 2001u);
  EXPECT_EQ(*open().begin_life(500), 2002u);
  EXPECT_EQ(*open().begin_life(3000), 3000u);
  folder_.write("a-0/life", "twelve");
  EXPECT_EQ(open().begin_life(4000).status().code(), ErrorCode::kCorruption);
}

TEST_F(CheckpointStoreTest, AFolderThatCannotBeMadeIsNamed) {
  folder_.write("file", "");
  const auto store = CheckpointStore::open(folder_ / "file/a-0", 3);
  EXPECT_EQ(store.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(store.status().message().find("file/a-0"), std::string::npos);
}

TEST_F(CheckpointStoreTest, EachServerHasAFolderOfItsOwn) {
  EXPECT_EQ(checkpoint_folder("run/x", "frankfurt", 1), fs::path("run/x/frankfurt-1"));
}

}  // namespace
}  // namespace isthmus::server
