#include "proto/frame.h"

#include <gtest/gtest.h>

#include <string>

namespace isthmus::proto {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// RFC 3720, appendix B.4, and the customary "123456789".
TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8A9136AAu);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62A8AB43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32cTest, GoesOnWhereItStopped) {
  EXPECT_EQ(crc32c(bytes_of("56789"), crc32c(bytes_of("1234"))), 0xE3069283u);
}

Message sample() {
  return {Kind::kPushPull, 0x0102030405060708ull, "meta", {core::copy_bytes(bytes_of("payload"))}};
}

TEST(FrameTest, GoldenBytes) {
  const auto header = encode_header(sample());
  const unsigned char expected[kHeaderBytes] = {'I', 'S', 'H', 'M', 1, 6, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
                                                7,   0,   0,   0,   0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    if (i >= 12 && i < 16) continue;  // The checksum, below.
    EXPECT_EQ(std::to_integer<int>(header[i]), expected[i]) << "byte " << i;
  }
  // The same sum over the golden header (its field 0) and the meta, by the definition of the format.
  const std::uint32_t crc = crc32c(bytes_of("meta"), crc32c(std::as_bytes(std::span(expected))));
  EXPECT_TRUE(check_meta(header, "meta").ok());
  EXPECT_EQ(decode_header(header, 7)->crc32c, crc);
}

TEST(FrameTest, ComesBackAsItWas) {
  const auto header = encode_header(sample());
  const Result<Header> decoded = decode_header(header, 7);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->kind, Kind::kPushPull);
  EXPECT_EQ(decoded->meta_bytes, 4u);
  EXPECT_EQ(decoded->payload_bytes, 7u);
  EXPECT_EQ(decoded->request_id, 0x0102030405060708ull);
}

TEST(FrameTest, RefusesWhatItDoesNotKnow) {
  const auto good = encode_header(sample());
  for (const auto& [at, value] :
       {std::pair{0, 0x00}, {4, 9}, {5, 200}, {5, 0}, {6, 1}, {7, 0x80}, {11, 0x7f}}) {
    auto bad = good;
    bad[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    EXPECT_EQ(decode_header(bad, 7).status().code(), ErrorCode::kProtocol) << "byte " << at;
  }
  EXPECT_EQ(decode_header(std::span(good).first(31), 7).status().code(), ErrorCode::kProtocol);
}

TEST(FrameTest, RefusesAPayloadOverTheLimit) {
  Message huge = sample();
  auto header = encode_header(huge);
  EXPECT_TRUE(decode_header(header, 7).ok());
  EXPECT_EQ(decode_header(header, 6).status().code(), ErrorCode::kProtocol);
  header[23] = std::byte{0xff};  // 2^63 and more
  EXPECT_EQ(decode_header(header, 1ull << 40).status().code(), ErrorCode::kProtocol);
}

TEST(FrameTest, ADamagedHeaderOrMetaDoesNotPass) {
  const auto good = encode_header(sample());
  EXPECT_TRUE(check_meta(good, "meta").ok());
  EXPECT_EQ(check_meta(good, "mete").code(), ErrorCode::kCorruption);
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    auto bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_EQ(check_meta(bad, "meta").code(), ErrorCode::kCorruption) << "byte " << i;
  }
}

}  // namespace
}  // namespace isthmus::proto
