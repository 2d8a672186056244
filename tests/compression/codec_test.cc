// What every codec promises, on every backend of this CPU.

#include "compression/codec.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <limits>
#include <tuple>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

class CodecTest : public testing::TestWithParam<std::tuple<core::CodecConfig, const Kernels*>> {
 protected:
  const std::unique_ptr<const Codec> codec_ = make_codec(std::get<0>(GetParam()), *std::get<1>(GetParam()));
  const std::unique_ptr<const Codec> scalar_ = make_codec(std::get<0>(GetParam()), scalar_kernels());
};

// Lengths around every block, vector and piece boundary that a codec has.
constexpr std::size_t kLengths[] = {0,   1,   2,   7,   8,    15,   16,   17,  255,
                                    256, 257, 511, 513, 1100, 4095, 4097, 9000};

TEST_P(CodecTest, RecordsFitAndDecode) {
  for (const std::size_t n : kLengths) {
    const std::vector<float> in = awkward(n);
    const Bytes record = encode(*codec_, in);
    EXPECT_LE(record.size(), codec_->max_encoded_bytes(n));
    std::vector<float> out(n, 7.0f);
    ASSERT_TRUE(codec_->decode(record, out).ok()) << n;
    EXPECT_TRUE(all_finite(out)) << n;
  }
}

TEST_P(CodecTest, AllBackendsWriteAndReadTheSameBits) {
  for (const std::size_t n : kLengths) {
    const std::vector<float> in = awkward(n);
    const Bytes record = encode(*codec_, in);
    EXPECT_EQ(record, encode(*scalar_, in)) << n;
    std::vector<float> sum = gaussian(n, 9);
    std::vector<float> expected = sum;
    ASSERT_TRUE(codec_->accumulate(record, 0.3f, sum).ok());
    ASSERT_TRUE(scalar_->accumulate(record, 0.3f, expected).ok());
    EXPECT_EQ(bits_of(sum), bits_of(expected)) << n;
  }
}

TEST_P(CodecTest, DecodingIsAccumulatingIntoZeros) {
  for (const std::size_t n : kLengths) {
    const Bytes record = encode(*codec_, awkward(n));
    std::vector<float> decoded(n, -3.0f);
    std::vector<float> sum(n, 0.0f);
    ASSERT_TRUE(codec_->decode(record, decoded).ok());
    ASSERT_TRUE(codec_->accumulate(record, 1.0f, sum).ok());
    EXPECT_EQ(bits_of(decoded), bits_of(sum)) << n;
  }
}

TEST_P(CodecTest, AccumulatesWeightTimesDecoded) {
  const std::size_t n = 1100;
  const Bytes record = encode(*codec_, gaussian(n));
  std::vector<float> decoded(n);
  std::vector<float> sum = gaussian(n, 2);
  std::vector<float> expected = sum;
  ASSERT_TRUE(codec_->decode(record, decoded).ok());
  ASSERT_TRUE(codec_->accumulate(record, -0.7f, sum).ok());
  for (std::size_t i = 0; i < n; ++i) expected[i] += -0.7f * decoded[i];
  EXPECT_EQ(bits_of(sum), bits_of(expected));
}

TEST_P(CodecTest, ReadsRecordsAtAnyAddress) {
  const std::size_t n = 700;
  const Bytes record = encode(*codec_, gaussian(n));
  std::vector<float> expected(n);
  ASSERT_TRUE(codec_->decode(record, expected).ok());
  for (std::size_t offset = 1; offset < 8; ++offset) {
    Bytes moved(offset);
    moved.insert(moved.end(), record.begin(), record.end());
    std::vector<float> out(n);
    ASSERT_TRUE(codec_->decode(std::span(moved).subspan(offset), out).ok());
    EXPECT_EQ(bits_of(out), bits_of(expected));
  }
}

TEST_P(CodecTest, WritesRecordsAtAnyAddress) {
  const std::vector<float> in = gaussian(700);
  const Bytes expected = encode(*codec_, in);
  Bytes out(codec_->max_encoded_bytes(in.size()) + 3, std::byte{0xee});
  CodecState state;
  const std::size_t size = codec_->encode(in, state, std::span(out).subspan(3));
  EXPECT_EQ(Bytes(out.begin() + 3, out.begin() + 3 + static_cast<std::ptrdiff_t>(size)), expected);
}

TEST_P(CodecTest, ZerosStayZeros) {
  for (const float zero : {0.0f, -0.0f}) {
    const std::vector<float> in(600, zero);
    std::vector<float> out(600, 1.0f);
    ASSERT_TRUE(codec_->decode(encode(*codec_, in), out).ok());
    EXPECT_EQ(bits_of(out), std::vector<std::uint32_t>(600, 0));
  }
}

TEST_P(CodecTest, RefusesEveryWrongSizeAndLeavesTheOutputAlone) {
  const std::size_t n = 300;
  const Bytes record = encode(*codec_, gaussian(n));
  Bytes longer = record;
  longer.push_back(std::byte{0});
  std::vector<float> sum = gaussian(n, 3);
  const std::vector<float> before = sum;
  for (std::size_t size = 0; size < record.size(); ++size) {
    EXPECT_EQ(codec_->accumulate(std::span(record).first(size), 1.0f, sum).code(), ErrorCode::kCorruption);
    EXPECT_EQ(codec_->decode(std::span(record).first(size), sum).code(), ErrorCode::kCorruption);
  }
  EXPECT_EQ(codec_->accumulate(longer, 1.0f, sum).code(), ErrorCode::kCorruption);
  EXPECT_EQ(codec_->decode(longer, sum).code(), ErrorCode::kCorruption);
  EXPECT_EQ(sum, before);
}

// Any bytes either decode to finite values or are refused without a trace.
TEST_P(CodecTest, SurvivesFlippedAndRandomBytes) {
  const std::size_t n = 300;
  const Bytes record = encode(*codec_, gaussian(n));
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    Bytes hostile = record;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      hostile[random() % hostile.size()] = static_cast<std::byte>(random());
    }
    std::vector<float> sum(n, 0.5f);
    const Status status = codec_->accumulate(hostile, 1.0f, sum);
    if (status.ok()) {
      EXPECT_TRUE(all_finite(sum));
    } else {
      EXPECT_EQ(status.code(), ErrorCode::kCorruption);
      EXPECT_EQ(sum, std::vector<float>(n, 0.5f));
    }
  }
}

// What is not sent stays in x - sent; repeating that sends everything, on any backend.
TEST_P(CodecTest, ErrorFeedbackConverges) {
  const std::vector<float> x = gaussian(2000, 4);
  std::vector<float> sent(x.size(), 0.0f);
  Bytes out(codec_->max_encoded_bytes(x.size()));
  CodecState state;
  for (int round = 0; round < 150; ++round) {
    ASSERT_TRUE(codec_->encode_delta(x, sent, sent, state, out).ok());
  }
  // A sign moves every element by the mean, so the largest take their time.
  EXPECT_LT(nmse(x, sent), codec_->id() == CodecId::kSign ? 1e-3 : 1e-6);
}

INSTANTIATE_TEST_SUITE_P(EveryCodecAndBackend, CodecTest,
                         testing::Combine(testing::ValuesIn(all_codecs()),
                                          testing::ValuesIn(available_kernels())),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) + "_" +
                                  std::string(std::get<1>(info.param)->name);
                         });

TEST(MakeCodecTest, GivesTheCodecThatTheConfigNames) {
  using core::CodecKind;
  const std::pair<CodecKind, CodecId> ids[] = {
      {CodecKind::kFp32, CodecId::kFp32},  {CodecKind::kFp16, CodecId::kFp16},
      {CodecKind::kBf16, CodecId::kBf16},  {CodecKind::kInt8, CodecId::kInt8},
      {CodecKind::kInt4, CodecId::kInt4},  {CodecKind::kFp4, CodecId::kFp4},
      {CodecKind::kSign, CodecId::kSign},  {CodecKind::kTopk, CodecId::kTopk},
      {CodecKind::kRandk, CodecId::kRandk}};
  EXPECT_EQ(std::size(ids), names_of(CodecKind()).size());
  for (const auto& [kind, id] : ids) EXPECT_EQ(make_codec({.kind = kind})->id(), id);
  EXPECT_EQ(make_codec({.kind = CodecKind::kInt4, .rotate = true})->id(), CodecId::kRotatedInt4);
}

TEST(FindDecoderTest, ReadsWhatEveryCodecWrites) {
  const std::vector<float> in = gaussian(500);
  for (const core::CodecConfig& config : all_codecs()) {
    const auto codec = make_codec(config);
    const Result<const Codec*> decoder = find_decoder(static_cast<std::uint8_t>(codec->id()));
    ASSERT_TRUE(decoder.ok());
    std::vector<float> expected(in.size());
    std::vector<float> out(in.size());
    const Bytes record = encode(*codec, in);
    ASSERT_TRUE(codec->decode(record, expected).ok());
    ASSERT_TRUE((*decoder)->decode(record, out).ok());
    EXPECT_EQ(bits_of(out), bits_of(expected));
  }
}

TEST(FindDecoderTest, RefusesUnknownIds) {
  for (const std::uint8_t id : {0, 11, 255})
    EXPECT_EQ(find_decoder(id).status().code(), ErrorCode::kProtocol);
}

TEST(AllFiniteTest, FindsOneBadElementAnywhere) {
  std::vector<float> values(67, FLT_MAX);
  EXPECT_TRUE(all_finite(values));
  EXPECT_TRUE(all_finite({}));
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::nanf("")}) {
    for (float& value : values) {
      value = bad;
      EXPECT_FALSE(all_finite(values));
      value = 1e-45f;
    }
  }
}

}  // namespace
}  // namespace isthmus::compression
