#include "trainer/idx_file.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/scratch_folder.h"
#include "tests/trainer/idx_bytes.h"

namespace isthmus::models {
namespace {

using namespace std::string_literals;

class IdxFileTest : public ::testing::Test {
 protected:
  // The error of reading these bytes, which must name the file.
  Status error_of(const std::string& bytes) {
    const auto path = folder_.write("hostile", bytes);
    const Status status = read_idx(path).status();
    EXPECT_NE(status.message().find(path.string()), std::string::npos) << status.to_string();
    return status;
  }

  ScratchFolder folder_;
};

TEST_F(IdxFileTest, ReadsPlainAndGzippedAlike) {
  const std::string bytes = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s + "abcdef";
  folder_.write("plain", bytes);
  write_gzip(folder_ / "packed.gz", bytes);
  for (const char* name : {"plain", "packed.gz"}) {
    const Result<IdxArray> array = read_idx(folder_ / name);
    ASSERT_TRUE(array.ok()) << array.status().to_string();
    EXPECT_EQ(array->dimensions, (std::vector<std::uint32_t>{2, 3}));
    EXPECT_EQ(array->bytes, (std::vector<std::uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  }
}

TEST_F(IdxFileTest, AMissingFileIsNotFound) {
  const Status status = read_idx(folder_ / "nothing").status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_NE(status.message().find((folder_ / "nothing").string()), std::string::npos);
}

TEST_F(IdxFileTest, RefusesAnythingElse) {
  const std::string good = idx_bytes({2, 3}, "abcdef");
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_EQ(error_of(good.substr(0, length)).code(), ErrorCode::kCorruption) << length;
  EXPECT_EQ(error_of(good + "g").code(), ErrorCode::kCorruption);
  EXPECT_EQ(error_of(idx_bytes({}, "")).code(), ErrorCode::kCorruption);
  EXPECT_EQ(error_of(idx_bytes({1, 1, 1, 1, 1}, "a")).code(), ErrorCode::kCorruption);
  EXPECT_EQ(error_of(idx_bytes({2, 0}, "")).code(), ErrorCode::kCorruption);
  EXPECT_EQ(error_of("\0\0\x0d\x01\0\0\0\x01"s + "abcd").code(), ErrorCode::kCorruption);  // Floats.
  EXPECT_EQ(error_of("\x50\x4b\x03\x04 some zip"s).code(), ErrorCode::kCorruption);
}

TEST_F(IdxFileTest, AnAbsurdSizeIsRefusedBeforeMemoryIsTaken) {
  EXPECT_EQ(error_of(idx_bytes({0xffffffffu}, "a")).code(), ErrorCode::kResourceExhausted);
  // The product of these overflows 64 bits to a small number.
  EXPECT_EQ(error_of(idx_bytes({1u << 31, 1u << 31, 4, 1}, "a")).code(), ErrorCode::kResourceExhausted);
  // Within the limit, but the file does not have it.
  EXPECT_EQ(error_of(idx_bytes({1u << 30}, "a")).code(), ErrorCode::kCorruption);
}

TEST_F(IdxFileTest, NoticesDamageInsideGzip) {
  const auto path = folder_ / "packed.gz";
  write_gzip(path, idx_bytes({1000}, std::string(1000, 'x')));
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 8] ^= 1;
  EXPECT_EQ(error_of(wrong_checksum).code(), ErrorCode::kCorruption);
  EXPECT_EQ(error_of(good.substr(0, good.size() / 2)).code(), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace isthmus::models
