#include "compression/dense_codec.h"

#include <gtest/gtest.h>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

// One byte an element, worth its value; 255 is not allowed.
class ByteCodec final : public DenseCodec {
 public:
  using DenseCodec::DenseCodec;
  CodecId id() const noexcept override { return CodecId::kInt8; }
  std::size_t max_encoded_bytes(std::size_t elements) const noexcept override { return elements; }
  std::size_t encode(std::span<const float> in, CodecState&, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = static_cast<std::byte>(in[i]);
    return in.size();
  }

 private:
  Status check_values(std::span<const std::byte> in, std::size_t) const override {
    for (const std::byte value : in) {
      if (value == std::byte{255}) return {ErrorCode::kCorruption, "255"};
    }
    return {};
  }
  void add(std::span<const std::byte> in, float weight, std::span<float> sum) const override {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * static_cast<float>(in[i]);
  }
};

TEST(DenseCodecTest, DecodesEveryPieceOfALongRecord) {
  const ByteCodec codec(scalar_kernels());
  for (const std::size_t n : {0, 1, 4095, 4096, 4097, 10000}) {
    std::vector<float> in(n);
    for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<float>(i % 251);
    std::vector<float> out(n, -1.0f);
    ASSERT_TRUE(codec.decode(encode(codec, in), out).ok());
    EXPECT_EQ(out, in);
  }
}

TEST(DenseCodecTest, ChecksTheWholeRecordBeforeItWrites) {
  const ByteCodec codec(scalar_kernels());
  Bytes record(10000, std::byte{1});
  record.back() = std::byte{255};
  std::vector<float> out(10000, -1.0f);
  EXPECT_EQ(codec.decode(record, out).code(), ErrorCode::kCorruption);
  EXPECT_EQ(codec.accumulate(record, 2.0f, out).code(), ErrorCode::kCorruption);
  EXPECT_EQ(out, std::vector<float>(10000, -1.0f));
}

TEST(DenseCodecTest, SaysWhatSizeItExpected) {
  std::vector<float> out(4);
  const Status status = ByteCodec(scalar_kernels()).decode(Bytes(3), out);
  EXPECT_EQ(status.message(), "record of 3 bytes where 4 elements take 4");
}

}  // namespace
}  // namespace isthmus::compression
