#include "compression/kept_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using core::KeptValues;

constexpr KeptValues kAll[] = {KeptValues::kFp32, KeptValues::kFp16, KeptValues::kInt8};

TEST(KeptValuesTest, KindsAreCodecIds) {
  EXPECT_EQ(kept_kind(KeptValues::kFp32), std::byte{1});
  EXPECT_EQ(kept_kind(KeptValues::kFp16), std::byte{2});
  EXPECT_EQ(kept_kind(KeptValues::kInt8), std::byte{4});
  for (const KeptValues values : kAll) EXPECT_EQ(read_kept_kind(kept_kind(values)), values);
  for (const int kind : {0, 3, 5, 255}) EXPECT_FALSE(read_kept_kind(static_cast<std::byte>(kind)));
}

TEST(KeptValuesTest, CountsTheRoundedShareButAtLeastOne) {
  EXPECT_EQ(kept_count(0.01, 149), 1u);
  EXPECT_EQ(kept_count(0.01, 151), 2u);
  EXPECT_EQ(kept_count(1e-6, 3), 1u);
  EXPECT_EQ(kept_count(1.0, 100), 100u);
  EXPECT_EQ(kept_count(0.5, 0), 0u);
}

TEST(KeptValuesTest, BytesAreThoseOfBlocks) {
  EXPECT_EQ(kept_bytes(KeptValues::kFp32, 300), 1200u);
  EXPECT_EQ(kept_bytes(KeptValues::kFp16, 300), 600u);
  EXPECT_EQ(kept_bytes(KeptValues::kInt8, 300), 308u);
  EXPECT_EQ(kept_bytes(KeptValues::kInt8, 0), 0u);
}

TEST(KeptValuesTest, WritesTheCodecsOwnRecords) {
  const std::vector<float> in = gaussian(256);
  const core::CodecKind kinds[] = {core::CodecKind::kFp32, core::CodecKind::kFp16, core::CodecKind::kInt8};
  for (std::size_t i = 0; i < std::size(kAll); ++i) {
    for (const std::size_t n : {1, 17, 256}) {
      const auto codec = make_codec({.kind = kinds[i]});
      Bytes block(kept_bytes(kAll[i], n));
      encode_kept(kAll[i], best_kernels(), in.data(), n, block.data());
      EXPECT_EQ(block, encode(*codec, std::span(in).first(n)));
      EXPECT_TRUE(check_kept(kAll[i], best_kernels(), block.data(), n));
      std::vector<float> out(n, 9.0f), expected(n);
      decode_kept(kAll[i], best_kernels(), block.data(), n, out.data());
      ASSERT_TRUE(codec->decode(block, expected).ok());
      EXPECT_EQ(bits_of(out), bits_of(expected));
    }
  }
}

TEST(KeptValuesTest, TheLeastIsNotZeroAndLessIs) {
  for (const KeptValues values : kAll) {
    const float least = least_kept(values);
    const float less = std::nextafter(least, 0.0f);
    Bytes block(kept_bytes(values, 1));
    float out;
    encode_kept(values, best_kernels(), &least, 1, block.data());
    decode_kept(values, best_kernels(), block.data(), 1, &out);
    EXPECT_GT(out, 0.0f);
    if (values == KeptValues::kInt8) continue;  // Something smaller may round up to the least scale.
    encode_kept(values, best_kernels(), &less, 1, block.data());
    decode_kept(values, best_kernels(), block.data(), 1, &out);
    EXPECT_EQ(out, 0.0f);
  }
}

TEST(KeptValuesTest, RefusesWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(check_kept(KeptValues::kFp32, best_kernels(), std::as_bytes(std::span(&inf, 1)).data(), 1));
  Bytes block(kept_bytes(KeptValues::kInt8, 3));
  std::memcpy(block.data(), &inf, sizeof(inf));
  EXPECT_FALSE(check_kept(KeptValues::kInt8, best_kernels(), block.data(), 3));
}

}  // namespace
}  // namespace isthmus::compression
