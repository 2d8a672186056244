// The device's records and sums are those of the CPU, bit for bit. Built twice: with the emulated device, on
// which it always runs, and with CUDA, where it is skipped without a device.

#include "compression/cuda/device_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "compression/topk_codec.h"
#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using core::CodecConfig, core::CodecKind, core::KeptValues;

class DeviceCodecTest : public testing::TestWithParam<CodecConfig> {
 protected:
  void SetUp() override {
    const Result<std::string> device = device_name();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
};

// An array on the device that is a copy of one here. `shift` elements lie before it, so that it begins off
// every boundary but a float's.
class DeviceFloats {
 public:
  explicit DeviceFloats(std::span<const float> values, std::size_t shift = 0)
      : size_(values.size()), shift_(shift) {
    EXPECT_TRUE(memory_.allocate((size_ + shift) * sizeof(float)).ok());
    EXPECT_TRUE(copy_to_device(span().data(), values.data(), values.size_bytes(), nullptr).ok());
  }
  std::span<float> span() const { return memory_.as<float>().subspan(shift_, size_); }
  std::vector<float> read() const {
    std::vector<float> values(size_);
    EXPECT_TRUE(copy_to_host(values.data(), span().data(), size_ * sizeof(float), nullptr).ok());
    EXPECT_TRUE(OwnedStream().synchronize().ok());
    return values;
  }

 private:
  DeviceMemory memory_;
  std::size_t size_, shift_;
};

struct Encoded {
  bool ok = false;
  Bytes record;
  CodecState state;
  std::vector<float> moved;
};

enum class Moving { kNothing, kInPlace, kElsewhere };

Encoded on_host(const CodecConfig& config, std::span<const float> values, std::vector<float> view,
                CodecState state, Moving moving) {
  const auto codec = make_codec(config);
  Bytes out(codec->max_encoded_bytes(values.size()));
  std::vector<float> other(moving == Moving::kElsewhere ? values.size() : 0, 7.0f);
  std::vector<float>& moved = moving == Moving::kInPlace ? view : other;
  const auto bytes = codec->encode_delta(values, view, moved, state, out);
  if (!bytes.ok()) return {false, {}, state, moving == Moving::kInPlace ? moved : std::vector<float>()};
  out.resize(*bytes);
  return {true, out, state, moved};
}

Encoded on_device(const CodecConfig& config, std::span<const float> values, std::span<const float> view,
                  CodecState state, Moving moving, std::size_t shift = 0) {
  const auto encoder = make_device_encoder(config, values.size());
  EXPECT_TRUE(encoder.ok());
  const DeviceFloats device_values(values, shift), device_view(view, shift);
  const std::vector<float> sevens(moving == Moving::kElsewhere ? values.size() : 0, 7.0f);
  const DeviceFloats other(sevens);
  const DeviceFloats& moved = moving == Moving::kInPlace ? device_view : other;
  EXPECT_TRUE(
      (*encoder)->begin({device_values.span(), device_view.span(), moved.span()}, state, nullptr).ok());
  const auto record = (*encoder)->finish(state);
  if (!record.ok()) {
    EXPECT_EQ(record.status().code(), ErrorCode::kInvalidArgument);
    return {false, {}, state, moving == Moving::kInPlace ? moved.read() : std::vector<float>()};
  }
  EXPECT_TRUE((*encoder)->ready());
  return {true, Bytes(record->begin(), record->end()), state, moved.read()};
}

void expect_same(const Encoded& expected, const Encoded& got) {
  EXPECT_EQ(got.ok, expected.ok);
  EXPECT_EQ(got.record.size(), expected.record.size());
  EXPECT_TRUE(got.record == expected.record);
  EXPECT_EQ(bits_of(got.moved), bits_of(expected.moved));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(got.state.threshold),
            std::bit_cast<std::uint32_t>(expected.state.threshold));
  EXPECT_EQ(got.state.records, expected.state.records);
}

void expect_same_both_ways(const CodecConfig& config, std::span<const float> values,
                           std::span<const float> view, const CodecState& state = {.key = 0x123456789abcdefu},
                           Moving moving = Moving::kInPlace, std::size_t shift = 0) {
  const Encoded expected = on_host(config, values, {view.begin(), view.end()}, state, moving);
  expect_same(expected, on_device(config, values, view, state, moving, shift));
  if (!expected.ok) return;

  const auto codec = make_codec(config);
  std::vector<float> sum = gaussian(values.size(), 3);
  const DeviceFloats device_sum(sum, shift);
  const auto decoder = make_device_decoder(expected.record.size());
  ASSERT_TRUE(decoder.ok());
  ASSERT_TRUE(codec->accumulate(expected.record, 0.37f, sum).ok());
  ASSERT_TRUE((*decoder)->accumulate(*codec, expected.record, 0.37f, device_sum.span(), nullptr).ok());
  EXPECT_EQ(bits_of(device_sum.read()), bits_of(sum));
  ASSERT_TRUE(codec->decode(expected.record, sum).ok());
  ASSERT_TRUE((*decoder)->decode(*codec, expected.record, device_sum.span(), nullptr).ok());
  EXPECT_EQ(bits_of(device_sum.read()), bits_of(sum));
}

std::vector<float> zeros(std::size_t n) { return std::vector<float>(n, 0.0f); }

TEST_P(DeviceCodecTest, EveryLengthGivesTheSameBits) {
  for (std::size_t n = 0; n <= 1100; n += n < 140 || n > 1010 ? 1 : 13) {
    SCOPED_TRACE(n);
    expect_same_both_ways(GetParam(), gaussian(n, static_cast<std::uint32_t>(n)), gaussian(n, 2, 0.1f));
    if (HasFailure()) break;
  }
}

TEST_P(DeviceCodecTest, AwkwardNumbersGiveTheSameBits) {
  for (const std::size_t n : {63, 64, 257, 1024, 2500, 5000}) {
    SCOPED_TRACE(n);
    expect_same_both_ways(GetParam(), awkward(n), zeros(n));
    expect_same_both_ways(GetParam(), zeros(n), zeros(n));
    expect_same_both_ways(GetParam(), std::vector<float>(n, -2.5f), zeros(n));
    expect_same_both_ways(GetParam(), std::vector<float>(n, 1e-41f), zeros(n));
    expect_same_both_ways(GetParam(), std::vector<float>(n, FLT_MAX), zeros(n));
  }
}

TEST_P(DeviceCodecTest, UnalignedArraysGiveTheSameBits) {
  for (const std::size_t shift : {1, 2, 3})
    expect_same_both_ways(GetParam(), gaussian(3001), gaussian(3001, 2, 0.5f), {}, Moving::kInPlace, shift);
}

TEST_P(DeviceCodecTest, TheViewMovesWhereItIsToldTo) {
  const std::vector<float> values = laplace(9000), view = gaussian(9000, 4, 0.3f);
  for (const Moving moving : {Moving::kNothing, Moving::kInPlace, Moving::kElsewhere})
    expect_same_both_ways(GetParam(), values, view, {.key = 5, .records = 77}, moving);
}

// Several pieces, tiles and samples, and a threshold that is carried from one record to the next.
TEST_P(DeviceCodecTest, RecordAfterRecordOfALargeSlice) {
  const std::size_t n = 200'003;
  std::vector<float> view = zeros(n);
  CodecState state{.key = 9};
  for (std::uint32_t step = 1; step <= 3; ++step) {
    SCOPED_TRACE(step);
    const std::vector<float> values = laplace(n, step);
    const Encoded expected = on_host(GetParam(), values, view, state, Moving::kInPlace);
    expect_same(expected, on_device(GetParam(), values, view, state, Moving::kInPlace));
    if (HasFailure()) break;
    view = expected.moved;
    state = expected.state;
  }
}

// On a real device only: an emulated one takes minutes.
TEST_P(DeviceCodecTest, SomeMillionsGiveTheSameBits) {
  if (*device_name() == "emulated") GTEST_SKIP() << "an emulated device";
  const std::size_t n = 5'000'011;
  expect_same_both_ways(GetParam(), laplace(n, 6), gaussian(n, 2, 0.2f));
}

TEST_P(DeviceCodecTest, WhatIsNotFiniteIsRefusedAndMovesNothing) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t n : {10, 3000, 70'000}) {
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        std::vector<float> values = gaussian(n);
        values[at] = bad;
        const std::vector<float> view = gaussian(n, 2);
        const Encoded got = on_device(GetParam(), values, view, {.threshold = 0.5f}, Moving::kInPlace);
        EXPECT_FALSE(got.ok);
        EXPECT_EQ(bits_of(got.moved), bits_of(view));
        EXPECT_EQ(got.state.records, 0u);
        EXPECT_EQ(got.state.threshold, 0.5f);
      }
    }
  }
}

TEST_P(DeviceCodecTest, WithoutAViewTooItIsTheSame) {
  const std::vector<float> values = gaussian(2777);
  const auto codec = make_codec(GetParam());
  CodecState state{.key = 3}, device_state{.key = 3};
  const Bytes expected = encode(*codec, values, state);
  const auto encoder = make_device_encoder(GetParam(), 5000);
  ASSERT_TRUE(encoder.ok());
  const DeviceFloats device_values(values);
  ASSERT_TRUE((*encoder)->begin({.values = device_values.span()}, device_state, nullptr).ok());
  const auto record = (*encoder)->finish(device_state);
  ASSERT_TRUE(record.ok());
  EXPECT_TRUE(Bytes(record->begin(), record->end()) == expected);
  EXPECT_EQ(device_state.records, state.records);
}

TEST_P(DeviceCodecTest, ARecordIsCheckedBeforeItIsCopied) {
  const auto codec = make_codec(GetParam());
  Bytes record = encode(*codec, gaussian(500));
  const auto decoder = make_device_decoder(record.size());
  ASSERT_TRUE(decoder.ok());
  const DeviceFloats sum(zeros(500));
  record.pop_back();
  EXPECT_EQ((*decoder)->accumulate(*codec, record, 1.0f, sum.span(), nullptr).code(), ErrorCode::kCorruption);
  record.resize(record.size() + 2);
  EXPECT_EQ((*decoder)->decode(*codec, record, sum.span(), nullptr).code(), ErrorCode::kCorruption);
  EXPECT_EQ(sum.read(), zeros(500));
}

INSTANTIATE_TEST_SUITE_P(AllCodecs, DeviceCodecTest, testing::ValuesIn(all_codecs()),
                         [](const auto& info) { return name_of(info.param); });

class DeviceTopkTest : public DeviceCodecTest {};

// What a pass leaves decides about the next: every way through.
TEST_P(DeviceTopkTest, EveryThresholdLeadsToTheSameElements) {
  for (const std::size_t n : {5000, 66'001}) {
    const std::vector<float> values = laplace(n, 8);
    for (const float threshold :
         {0.0f, 1e-30f, 0.5f, 1.5f, 2.0f, 2.5f, 3.2f, 3.3f, 4.0f, 6.0f, 1e30f, -1.0f,
          std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      SCOPED_TRACE(std::to_string(n) + " " + std::to_string(threshold));
      const CodecState state{.threshold = threshold, .records = 3};
      expect_same_both_ways(GetParam(), values, zeros(n), state);
      if (HasFailure()) return;
    }
  }
}

TEST_P(DeviceTopkTest, EqualMagnitudesAreKeptInOrder) {
  const std::size_t n = 66'000;
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 7) * (i % 2 == 0 ? 1.0f : -1.0f);
  expect_same_both_ways(GetParam(), values, zeros(n), {.threshold = 6.0f});
  std::ranges::fill(values, 3.0f);
  expect_same_both_ways(GetParam(), values, zeros(n));
  for (std::size_t i = 0; i < n; i += 1000) values[i] = 1e-44f;
  expect_same_both_ways(GetParam(), values, zeros(n));
}

// Fewer are worth sending than are wanted.
TEST_P(DeviceTopkTest, FewThatAreNotZero) {
  std::vector<float> values = zeros(80'000);
  for (const std::size_t i : {3u, 40'000u, 40'001u, 79'999u}) values[i] = 1.0f + static_cast<float>(i);
  expect_same_both_ways(GetParam(), values, zeros(values.size()));
  values[5] = 1e-30f;
  expect_same_both_ways(GetParam(), values, zeros(values.size()), {.threshold = 2.0f});
}

std::vector<CodecConfig> topk_codecs() {
  std::vector<CodecConfig> all;
  for (const double keep : {0.1, 0.01, 0.001}) {
    for (const KeptValues values : {KeptValues::kFp32, KeptValues::kFp16, KeptValues::kInt8})
      all.push_back({.kind = CodecKind::kTopk, .keep = keep, .values = values});
  }
  all.push_back({.kind = CodecKind::kTopk, .keep = 1.0});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Topk, DeviceTopkTest, testing::ValuesIn(topk_codecs()), [](const auto& info) {
  return "keep_" + std::to_string(static_cast<int>(info.param.keep * 1000)) + "_" +
         std::string(to_string(info.param.values));
});

// Long gaps: a quotient of the Rice code that fills words of zeros.
TEST(DeviceCodec, GapsOfEveryLength) {
  if (const auto device = device_name(); !device.ok()) GTEST_SKIP() << device.status().message();
  std::vector<float> values = zeros(300'000);
  std::size_t at = 0;
  for (std::size_t gap = 1; at + gap < values.size(); gap = gap * 5 / 4 + 1) values[at += gap] = 2.0f;
  values[values.size() - 1] = 9.0f;
  expect_same_both_ways({.kind = CodecKind::kTopk, .keep = 0.0002, .values = KeptValues::kFp32}, values,
                        zeros(values.size()));
}

TEST(DeviceCodec, EveryIdThatThereIsDecodes) {
  if (const auto device = device_name(); !device.ok()) GTEST_SKIP() << device.status().message();
  for (int id = 1; id <= 10; ++id) {
    const Result<const Codec*> codec = find_decoder(static_cast<std::uint8_t>(id));
    ASSERT_TRUE(codec.ok());
    const std::vector<float> in = gaussian(1500);
    const Bytes record = encode(**codec, in);
    const auto decoder = make_device_decoder(record.size());
    const DeviceFloats out(zeros(1500));
    ASSERT_TRUE((*decoder)->decode(**codec, record, out.span(), nullptr).ok());
    std::vector<float> expected(1500);
    ASSERT_TRUE((*codec)->decode(record, expected).ok());
    EXPECT_EQ(bits_of(out.read()), bits_of(expected)) << id;
  }
}

// The staging memory is used again and again.
TEST(DeviceCodec, ManyRecordsThroughOneDecoder) {
  if (const auto device = device_name(); !device.ok()) GTEST_SKIP() << device.status().message();
  const auto codec = make_codec({.kind = CodecKind::kInt8});
  const auto decoder = make_device_decoder(codec->max_encoded_bytes(4000));
  std::vector<float> sum = zeros(4000);
  const DeviceFloats device_sum(sum);
  for (std::uint32_t i = 0; i < 9; ++i) {
    Bytes record = encode(*codec, gaussian(4000, i));
    ASSERT_TRUE(codec->accumulate(record, 0.5f, sum).ok());
    ASSERT_TRUE((*decoder)->accumulate(*codec, record, 0.5f, device_sum.span(), nullptr).ok());
    std::ranges::fill(record, std::byte{0x55});  // It was copied.
  }
  EXPECT_EQ(bits_of(device_sum.read()), bits_of(sum));
}

TEST(DeviceCodec, TooManyElementsAreRefused) {
  const auto encoder = make_device_encoder({}, std::size_t{1} << 31);
  EXPECT_FALSE(encoder.ok());
}

}  // namespace
}  // namespace isthmus::compression
