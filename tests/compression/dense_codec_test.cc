#include "compression/dense_codec.h"

#include <gtest/gtest.h>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

// One byte an element, worth its value; 255 is not allowed. With a key: its last byte is added to each value.
class ByteCodec final : public DenseCodec {
 public:
  using DenseCodec::DenseCodec;
  CodecId id() const noexcept override { return CodecId::kInt8; }

 private:
  std::size_t body_bytes(std::size_t elements) const noexcept override { return elements; }
  void encode_piece(std::span<const float> in, const Place& place, std::byte* out) const override {
    for (const float value : in) {
      *out++ = static_cast<std::byte>(value - static_cast<float>(place.numbers.key));
    }
  }
  Status check_values(std::span<const std::byte> body, std::size_t elements) const override {
    for (const std::byte value : body.first(elements)) {
      if (value == std::byte{255}) return {ErrorCode::kCorruption, "255"};
    }
    return {};
  }
  void add(const std::byte* in, const Place& place, float weight, std::span<float> sum) const override {
    for (float& value : sum)
      value += weight * static_cast<float>(static_cast<unsigned>(*in++) + place.numbers.key);
  }
};

TEST(DenseCodecTest, DecodesEveryPieceOfALongRecord) {
  const ByteCodec codec(scalar_kernels());
  for (const std::size_t n : {0, 1, 2047, 2048, 2049, 10000}) {
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

TEST(DenseCodecTest, AKeyTravelsInFrontAndCountsUp) {
  const ByteCodec codec(scalar_kernels(), true);
  const std::vector<float> in(5000, 7.0f);
  CodecState state{.key = 3, .records = 8};
  Bytes record = encode(codec, in, state);
  ASSERT_EQ(record.size(), 16u + 5000);
  EXPECT_EQ(Bytes(record.begin(), record.begin() + 17),
            bytes({3, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 4}));
  EXPECT_EQ(state.records, 9u);
  record[0] = std::byte{5};
  std::vector<float> out(5000);
  ASSERT_TRUE(codec.decode(record, out).ok());
  EXPECT_EQ(out, std::vector<float>(5000, 9.0f));
}

// From 4 MiB on a record is written past the caches.
TEST(DenseCodecTest, LargeRecordsAreTheSame) {
  const std::size_t n = (4 << 20) + 77;
  std::vector<float> in(n);
  for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<float>(i % 251);
  for (const Kernels* kernels : available_kernels()) {
    Bytes out(n + 5);
    CodecState state;
    std::vector<float> moved(n);
    const std::vector<float> zeros(n, 0.0f);
    const ByteCodec codec(*kernels);
    ASSERT_TRUE(codec.encode_delta(in, zeros, moved, state, std::span(out).subspan(5)).ok());
    EXPECT_EQ(moved, in);
    std::vector<float> decoded(n);
    ASSERT_TRUE(codec.decode(std::span(out).subspan(5), decoded).ok());
    EXPECT_EQ(decoded, in);
  }
}

TEST(DenseCodecTest, SaysWhatSizeItExpected) {
  std::vector<float> out(4);
  const Status status = ByteCodec(scalar_kernels()).decode(Bytes(3), out);
  EXPECT_EQ(status.message(), "record of 3 bytes where 4 elements take 4");
}

}  // namespace
}  // namespace isthmus::compression
