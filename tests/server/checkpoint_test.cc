#include "server/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/files.h"
#include "core/safetensors.h"
#include "tests/server/checkpoint_support.h"
#include "tests/support/scratch_folder.h"

namespace isthmus::server {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_checkpoint(folder_.path(), saved_).ok()); }

  std::string content(const std::string& file) { return *core::read_file(folder_ / file, 1 << 20); }
  void replace_in_manifest(const std::string& from, const std::string& to) {
    std::string text = content(kManifestFile);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    folder_.write(kManifestFile, text.replace(at, from.size(), to));
  }
  void expect_damaged(std::string_view text, ErrorCode code = ErrorCode::kCorruption) {
    const auto read = read_checkpoint(folder_.path());
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), code);
    EXPECT_NE(read.status().message().find(text), std::string::npos) << read.status().to_string();
  }

  const SavedServer saved_ = saved_server(checkpoint_job());
  ScratchFolder folder_;
};

TEST_F(CheckpointTest, ReadsWhatItWrote) {
  const auto read = read_checkpoint(folder_.path());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(difference(saved_, *read), "");
  EXPECT_EQ(read->step(), 400u);
  EXPECT_EQ(*checkpoint_step(folder_.path()), 400u);
}

// Others may look into it: tensors by names, in the format's own terms.
TEST_F(CheckpointTest, ItsArraysAreSafetensors) {
  std::map<std::string, std::vector<float>> arrays;
  for (const char* name : {"shard-0.safetensors", "shard-1.safetensors"}) {
    const auto file = core::read_safetensors(folder_ / name);
    ASSERT_TRUE(file.ok());
    for (std::size_t i = 0; i < file->table.size(); ++i) arrays[file->table[i].name] = file->values[i];
  }
  const std::string tensor = std::string(saved_.layout.tensors()[0].name);
  EXPECT_EQ(arrays.at("parameters:" + tensor + ":0"), (std::vector<float>{100, 101, 102, 103}));
  EXPECT_EQ(arrays.at("state1:" + tensor + ":0"), (std::vector<float>{120, 121, 122, 123}));
  EXPECT_EQ(arrays.size(), 7u);  // Two slices, three arrays each, one global.
}

TEST_F(CheckpointTest, EveryFileThatEndsEarlyIsFound) {
  for (const char* name : {kManifestFile, "shard-0.safetensors", "shard-1.safetensors"}) {
    const std::string whole = content(name);
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + whole.size() / 50) {
      folder_.write(name, whole.substr(0, bytes));
      EXPECT_FALSE(read_checkpoint(folder_.path()).ok()) << name << " " << bytes;
    }
    folder_.write(name, whole);
  }
  EXPECT_TRUE(read_checkpoint(folder_.path()).ok());
}

TEST_F(CheckpointTest, EveryBitOfAnArrayCounts) {
  const std::string whole = content("shard-1.safetensors");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    folder_.write("shard-1.safetensors", flipped);
    EXPECT_EQ(read_checkpoint(folder_.path()).status().code(), ErrorCode::kCorruption) << at;
  }
}

TEST_F(CheckpointTest, AMissingFileIsNamed) {
  fs::remove(folder_ / "shard-1.safetensors");
  expect_damaged("shard-1.safetensors", ErrorCode::kNotFound);
  fs::remove(folder_ / kManifestFile);
  expect_damaged(kManifestFile, ErrorCode::kNotFound);
}

TEST_F(CheckpointTest, AManifestOfAnotherSchemaIsRefused) {
  replace_in_manifest("\"schema\": 1", "\"schema\": 2");
  expect_damaged("schema 2");
}

TEST_F(CheckpointTest, AManifestMayNotPointElsewhere) {
  replace_in_manifest("\"shard-0.safetensors\"", "\"../shard-0.safetensors\"");
  expect_damaged("is no name of a file");
}

TEST_F(CheckpointTest, AManifestWithoutShardsIsRefused) {
  folder_.write(kManifestFile, R"({"schema": 1})");
  expect_damaged("no shard");
}

TEST_F(CheckpointTest, AManifestIsHeldAgainstItsArrays) {
  const std::string whole = content(kManifestFile);
  replace_in_manifest("\"slice\": 1", "\"slice\": 9");
  expect_damaged("slice 9");
  folder_.write(kManifestFile, whole);
  replace_in_manifest("\"weight\": 512", "\"weight\": -1");
  expect_damaged("weight");
  folder_.write(kManifestFile, whole);
  replace_in_manifest("\"name\": \"" + saved_.layout.tensors()[0].name + "\"", "\"name\": \"other\"");
  expect_damaged("parameters:other:0");
}

TEST_F(CheckpointTest, AShardWithoutSlicesIsOneToo) {
  SavedServer empty = saved_;
  empty.shards[1].slices.clear();
  ScratchFolder other;
  ASSERT_TRUE(write_checkpoint(other.path(), empty).ok());
  const auto read = read_checkpoint(other.path());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(difference(empty, *read), "");
}

TEST_F(CheckpointTest, WhereNothingCanBeWrittenTheFileIsNamed) {
  const Status status = write_checkpoint(folder_ / "missing", saved_);
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("shard-0.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::server
