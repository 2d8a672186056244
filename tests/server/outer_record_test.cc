#include "server/outer_record.h"

#include <cmath>
#include <limits>
#include <set>

#include "tests/server/outer_support.h"

namespace isthmus::server {
namespace {

using core::CodecKind;

core::SharedBytes record_of(const compression::Codec& codec, const std::vector<float>& values) {
  compression::CodecState state;
  const auto record = encode_record(codec, state, values, std::vector<float>(values.size()), {});
  EXPECT_TRUE(record.ok()) << record.status().to_string();
  return record.ok() ? *record : core::SharedBytes{};
}

TEST(OuterRecordTest, LosslessIsLossless) {
  const std::vector<float> values{1.0f, -0.1f, 1e-30f, 3e38f};
  EXPECT_EQ(static_cast<std::uint8_t>(lossless_codec().id()), kFp32);
  EXPECT_EQ(decoded(kFp32, record_of(lossless_codec(), values), 4), values);
}

TEST(OuterRecordTest, ASparseRecordDoesNotHoldALargeBuffer) {
  const auto topk = codec_of(CodecKind::kTopk, 1.0);
  std::vector<float> values(1000);
  values[7] = 2.0f;
  const core::SharedBytes record = record_of(*topk, values);
  EXPECT_LT(record.size(), 100u);
  EXPECT_EQ(decoded(static_cast<std::uint8_t>(topk->id()), record, 1000), values);
}

TEST(OuterRecordTest, WhatItMovesIsWhatARecordMoves) {
  const auto int8 = codec_of(CodecKind::kInt8);
  const std::vector<float> parameters{1.0f, -2.5f, 0.3f}, view{0.5f, 0.25f, 7.0f};
  std::vector<float> moved(3);
  compression::CodecState state;
  const auto record = encode_record(*int8, state, parameters, view, moved);
  ASSERT_TRUE(record.ok());
  const auto id = static_cast<std::uint8_t>(int8->id());
  EXPECT_EQ(floats_of(*moved_by(id, *record, view), 3), moved);
  const std::vector<float> told = decoded(id, *record, 3);
  std::vector<float> back{10.0f, 20.0f, 30.0f};
  take_back(id, *record, back);
  EXPECT_EQ(back, (std::vector<float>{10.0f - told[0], 20.0f - told[1], 30.0f - told[2]}));
}

TEST(OuterRecordTest, ADifferenceThatIsNotFiniteIsRefused) {
  compression::CodecState state;
  const std::vector<float> parameters{3e38f}, view{-3e38f};
  EXPECT_EQ(encode_record(lossless_codec(), state, parameters, view, {}).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST(OuterRecordTest, UnknownCodecIsAProtocolError) {
  EXPECT_EQ(check_record(99, bytes_of({1.0f}), 1).code(), ErrorCode::kProtocol);
  EXPECT_EQ(moved_by(99, bytes_of({1.0f}), std::vector<float>(1)).status().code(), ErrorCode::kProtocol);
}

TEST(OuterRecordTest, BadRecordsAreCorruption) {
  const float nan = std::nanf("");
  EXPECT_EQ(check_record(kFp32, bytes_of({1.0f}), 2).code(), ErrorCode::kCorruption);
  EXPECT_EQ(check_record(kFp32, bytes_of({1.0f, nan}), 2).code(), ErrorCode::kCorruption);
  EXPECT_TRUE(check_record(kFp32, bytes_of({1.0f, 2.0f}), 2).ok());
  EXPECT_EQ(moved_by(kFp32, bytes_of({1.0f, nan}), std::vector<float>(2)).status().code(),
            ErrorCode::kCorruption);
}

TEST(OuterRecordTest, MovesWhatItIsGivenAndRefusesToOverflow) {
  const std::vector<float> from{1.0f, 3e38f};
  auto moved = moved_by(kFp32, bytes_of({2.0f, -1e38f}), from);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(floats_of(*moved, 2), (std::vector<float>{3.0f, 3e38f - 1e38f}));
  EXPECT_EQ(moved_by(kFp32, bytes_of({2.0f, 1e38f}), from).status().code(), ErrorCode::kCorruption);
}

TEST(OuterRecordTest, ReadValuesSharesMemoryOrCopiesWhenItIsNotAligned) {
  const std::vector<float> values{1.0f, 2.0f, 3.0f};
  const core::SharedBytes aligned = bytes_of(values);
  auto shared = read_values(aligned, 3);
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(static_cast<const void*>(shared->get()), static_cast<const void*>(aligned.view.data()));

  core::Buffer buffer(13);
  std::copy(aligned.view.begin(), aligned.view.end(), buffer.writable().begin() + 1);
  auto copied = read_values(std::move(buffer).share(13).part(1, 12), 3);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(floats_of(*copied, 3), values);
}

TEST(OuterRecordTest, ReadValuesRefusesWrongSizesAndNaN) {
  EXPECT_EQ(read_values(bytes_of({1.0f, 2.0f}), 3).status().code(), ErrorCode::kProtocol);
  EXPECT_EQ(read_values({}, 1).status().code(), ErrorCode::kProtocol);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(read_values(bytes_of({1.0f, inf}), 2).status().code(), ErrorCode::kCorruption);
}

TEST(OuterRecordTest, ChecksumSeesEveryElementBitAndPlace) {
  for (std::size_t size : {1, 3, 4, 7, 64}) {
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i);
    std::set<std::uint64_t> seen{anchor_checksum(values)};
    for (std::size_t i = 0; i < size; ++i) {
      for (std::uint32_t bit = 0; bit < 32; ++bit) {
        const float kept = values[i];
        values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(kept) ^ 1u << bit);
        EXPECT_TRUE(seen.insert(anchor_checksum(values)).second) << i << " " << bit;
        values[i] = kept;
      }
    }
  }
  EXPECT_NE(anchor_checksum(std::vector<float>{1, 2}), anchor_checksum(std::vector<float>{2, 1}));
  EXPECT_NE(anchor_checksum(std::vector<float>{0}), anchor_checksum(std::vector<float>{0, 0}));
}

// Regions of different machines compare these: once chosen, they stay.
TEST(OuterRecordTest, ChecksumIsFrozen) {
  EXPECT_EQ(anchor_checksum(std::vector<float>{1.0f, -2.0f, 0.5f, 3.25f, 7.0f}), 0x6c9e58e977ebdd6eu);
}

}  // namespace
}  // namespace isthmus::server
