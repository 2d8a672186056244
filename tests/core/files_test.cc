#include "core/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/scratch_folder.h"

namespace isthmus::core {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  ScratchFolder folder_;
};

TEST_F(FilesTest, ReadsWhatItWrote) {
  const std::string first = "one\0two", second = "three";
  const FilePiece pieces[] = {std::as_bytes(std::span(first)), {}, std::as_bytes(std::span(second))};
  ASSERT_TRUE(write_file(folder_ / "file", pieces).ok());
  EXPECT_EQ(*read_file(folder_ / "file", 100), first + second);
  ASSERT_TRUE(write_file(folder_ / "file", "again").ok());
  EXPECT_EQ(*read_file(folder_ / "file", 5), "again");
  EXPECT_FALSE(fs::exists(folder_ / "file.partial"));
}

TEST_F(FilesTest, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(read_file(folder_ / "missing", 100).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(read_file(folder_.path(), 100).status().code(), ErrorCode::kNotFound);
  const auto long_one = read_file(folder_.write("long", "123456"), 5);
  EXPECT_EQ(long_one.status().code(), ErrorCode::kCorruption);
  EXPECT_NE(long_one.status().message().find((folder_ / "long").string()), std::string::npos);
}

// As on a full disk: the file may not grow any more.
TEST_F(FilesTest, AWriteThatFailsLeavesTheOldFile) {
  ASSERT_TRUE(write_file(folder_ / "file", "old").ok());
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit tight = before;
  tight.rlim_cur = 4;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = write_file(folder_ / "file", "longer than four");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(*read_file(folder_ / "file", 100), "old");
  EXPECT_FALSE(fs::exists(folder_ / "file.partial"));
}

TEST_F(FilesTest, FoldersAreMadeWithThoseAbove) {
  EXPECT_TRUE(make_folder(folder_ / "a/b/c").ok());
  EXPECT_TRUE(make_folder(folder_ / "a/b/c").ok());
  EXPECT_TRUE(sync_folder(folder_ / "a/b/c").ok());
  folder_.write("file", "");
  const Status under_a_file = make_folder(folder_ / "file/d");
  EXPECT_EQ(under_a_file.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(under_a_file.message().find((folder_ / "file/d").string()), 0u);
  EXPECT_EQ(sync_folder(folder_ / "missing").code(), ErrorCode::kInvalidArgument);
}

TEST_F(FilesTest, RenamesFoldersUnlessSomethingIsThere) {
  ASSERT_TRUE(make_folder(folder_ / "from").ok());
  folder_.write("from/file", "x");
  ASSERT_TRUE(rename_durably(folder_ / "from", folder_ / "to").ok());
  EXPECT_TRUE(fs::exists(folder_ / "to/file"));
  ASSERT_TRUE(make_folder(folder_ / "other").ok());
  EXPECT_EQ(rename_durably(folder_ / "other", folder_ / "to").code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(fs::exists(folder_ / "to/file"));
}

}  // namespace
}  // namespace isthmus::core
