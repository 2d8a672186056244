#include "core/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <limits>
#include <string>

#include "tests/support/scratch_folder.h"

namespace isthmus::core {
namespace {

using namespace std::string_literals;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A file with this header and so many bytes of data.
std::string file_bytes(const std::string& header, std::size_t data_bytes) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(data_bytes, '\0');
}

class SafetensorsTest : public ::testing::Test {
 protected:
  Status write(const std::filesystem::path& path) {
    const std::vector<ConstTensorView> views(values_.begin(), values_.end());
    return write_safetensors(path, table_, views, {{"job", "fashion"}, {"step", "12"}});
  }

  ScratchFolder folder_;
  std::vector<TensorSpec> table_ = {{"z.weight", {2, 3}}, {"a.bias", {2}}, {"scalar", {}}};
  std::vector<std::vector<float>> values_ = {{1.5f, -2.0f, 0.0f, 4.0f, 5.0f, 1e-3f}, {7.0f, 8.0f}, {9.0f}};
};

TEST_F(SafetensorsTest, WritesTheBytesOfTheFormat) {
  const std::vector<float> values{1.0f, -2.0f};
  const std::vector<TensorSpec> table{{"w", {2}}};
  const std::vector<ConstTensorView> views{values};
  ASSERT_TRUE(write_safetensors(folder_ / "model", table, views, {}).ok());
  const std::string header = R"({"w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  ASSERT_EQ(header.size(), 54u);  // Two spaces make it 56, so that data begins at 64.
  EXPECT_EQ(content_of(folder_ / "model"), "\x38\0\0\0\0\0\0\0"s + header + "  " + "\0\0\x80\x3f\0\0\0\xc0"s);
}

TEST_F(SafetensorsTest, ReadsBackWhatItWrote) {
  values_[1][0] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(write(folder_ / "model").ok());
  const auto file = read_safetensors(folder_ / "model");
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file->table, table_);
  EXPECT_EQ(file->values, values_);
  EXPECT_EQ(file->metadata, (Metadata{{"job", "fashion"}, {"step", "12"}}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model.partial"));
}

TEST_F(SafetensorsTest, AReaderOfTheDescriptionAloneAgrees) {
  ASSERT_TRUE(write(folder_ / "model").ok());
  const std::string command = "python3 '" SAFETENSORS_READER "' '" + (folder_ / "model").string() + "'";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
  ASSERT_EQ(::pclose(pipe), 0);
  EXPECT_EQ(output,
            "[('job', 'fashion'), ('step', '12')]\n"
            "z.weight F32 [2, 3] (1.5, -2.0, 0.0, 4.0, 5.0, 0.0010000000474974513)\n"
            "a.bias F32 [2] (7.0, 8.0)\n"
            "scalar F32 [] (9.0,)\n");
}

TEST_F(SafetensorsTest, APlaceThatCannotBeWrittenIsNamed) {
  folder_.write("file", "");
  for (const char* name : {"no-such-folder/model", "file/model"}) {
    const Status status = write(folder_ / name);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(status.message().find((folder_ / name).string()), std::string::npos) << status.message();
  }
}

TEST_F(SafetensorsTest, ADiskThatFillsLeavesTheOldFile) {
  ASSERT_TRUE(write(folder_ / "model").ok());
  const std::string before = content_of(folder_ / "model");
  table_ = {{"large", {50000}}};
  values_ = {std::vector<float>(50000, 1.0f)};

  // The file size limit stands in for a full disk: write() fails half-way in just the same way.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{100000, old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write(folder_ / "model");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << status.to_string();
  EXPECT_NE(status.message().find((folder_ / "model").string()), std::string::npos) << status.message();
  EXPECT_EQ(content_of(folder_ / "model"), before);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model.partial"));
}

TEST_F(SafetensorsTest, NamesThatTheFormatCannotHoldAreRefused) {
  for (const std::string& name : {"__metadata__"s, "a.bias"s, "\xff\xfe"s}) {
    table_[0].name = name;
    EXPECT_EQ(write(folder_ / "model").code(), ErrorCode::kInvalidArgument) << name;
  }
}

TEST_F(SafetensorsTest, RefusesWhatIsNoSuchFile) {
  ASSERT_TRUE(write(folder_ / "model").ok());
  const std::string good = content_of(folder_ / "model");
  const auto code_of = [&](const std::string& bytes) {
    return read_safetensors(folder_.write("hostile", bytes)).status().code();
  };
  EXPECT_EQ(code_of(good), ErrorCode::kOk);
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_EQ(code_of(good.substr(0, length)), ErrorCode::kCorruption) << length;
  EXPECT_EQ(code_of(good + "x"), ErrorCode::kCorruption);
  EXPECT_EQ(code_of("\xff\xff\xff\xff\xff\xff\xff\xff" + good.substr(8)), ErrorCode::kCorruption);
  const std::string one = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(code_of(file_bytes(R"({"a":)" + one + "}", 8)), ErrorCode::kOk);
  EXPECT_EQ(code_of(file_bytes(R"({"a":)" + one + R"(,"b":)" + one + "}", 8)), ErrorCode::kCorruption);
  for (const char* header :
       {"", "[]", "{", "7", R"({"a":7})", R"({"a":{}})", R"({"__metadata__":7})",
        R"({"__metadata__":{"a":7}})", R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":"x","data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
        R"({"a":{"dtype":"F32","shape":[4611686018427387904,4,2],"data_offsets":[0,8]}})"})
    EXPECT_EQ(code_of(file_bytes(header, 8)), ErrorCode::kCorruption) << header;
  EXPECT_EQ(read_safetensors(folder_ / "missing").status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace isthmus::core
