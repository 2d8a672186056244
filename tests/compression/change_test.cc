// Error feedback: what encode_delta() promises, with every codec.

#include "compression/change.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cstring>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(ChangeTest, IsADifferenceWhereThereIsAView) {
  const std::vector<float> a{3.0f, 5.0f};
  std::vector<float> b{1.0f, 7.0f};
  EXPECT_EQ((Change{a}.at(1)), 5.0f);
  EXPECT_EQ((Change{a, b}.at(1)), -2.0f);
  EXPECT_TRUE((Change{a, b, b}.moves_view()));
  EXPECT_FALSE((Change{a, b}.moves_view()));
}

TEST(ChangeTest, IsFiniteLooksAtAllOfThem) {
  for (const std::size_t bad : {0u, 2047u, 2048u, 4999u}) {
    std::vector<float> a(5000, FLT_MAX);
    std::vector<float> b(5000, 1.0f);
    EXPECT_TRUE(is_finite({a, b}, best_kernels()));
    b[bad] = -FLT_MAX;
    EXPECT_FALSE(is_finite({a, b}, best_kernels()));
  }
}

class EncodeDeltaTest : public testing::TestWithParam<core::CodecConfig> {
 protected:
  const std::unique_ptr<const Codec> codec_ = make_codec(GetParam());
};

TEST_P(EncodeDeltaTest, EncodesTheDifferenceAndMovesTheViewByWhatIsDecoded) {
  for (const std::size_t n : {0, 1, 63, 1000, 5000}) {
    const std::vector<float> a = gaussian(n, 1);
    const std::vector<float> b = gaussian(n, 2);
    std::vector<float> delta(n);
    for (std::size_t i = 0; i < n; ++i) delta[i] = a[i] - b[i];
    CodecState state, of_plain, of_other;
    std::vector<float> view = b;
    Bytes out(codec_->max_encoded_bytes(n));
    const Result<std::size_t> size = codec_->encode_delta(a, view, view, state, out);
    ASSERT_TRUE(size.ok());
    const Bytes record(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(*size));
    EXPECT_EQ(record, encode(*codec_, delta, of_plain));
    EXPECT_EQ(state.threshold, of_plain.threshold);
    std::vector<float> expected = b;
    ASSERT_TRUE(codec_->accumulate(record, 1.0f, expected).ok());
    EXPECT_EQ(bits_of(view), bits_of(expected));
    // Into another array, and into none.
    std::vector<float> moved(n, 9.0f);
    ASSERT_TRUE(codec_->encode_delta(a, b, moved, of_other, out).ok());
    EXPECT_EQ(bits_of(moved), bits_of(expected));
    ASSERT_TRUE(codec_->encode_delta(a, b, {}, state, out).ok());
  }
}

TEST_P(EncodeDeltaTest, RefusesWhatIsNotFiniteWithoutATrace) {
  const std::size_t n = 9000;
  const std::vector<float> view = gaussian(n, 1);
  const std::pair<float, float> bad[] = {
      {kInf, 0.0f}, {std::nanf(""), 0.0f}, {FLT_MAX, -FLT_MAX}, {kInf, kInf}};
  for (const auto& [a, b] : bad) {
    for (const std::size_t place : {std::size_t{0}, n / 2, n - 1}) {
      std::vector<float> parameters = gaussian(n, 2);
      std::vector<float> moving = view;
      parameters[place] = a;
      moving[place] = b;
      const std::vector<float> before = moving;
      std::vector<float> other(n);
      Bytes out(codec_->max_encoded_bytes(n));
      CodecState state{.threshold = 0.7f, .key = 5, .records = 3};
      EXPECT_EQ(codec_->encode_delta(parameters, moving, moving, state, out).status().code(),
                ErrorCode::kInvalidArgument);
      EXPECT_EQ(codec_->encode_delta(parameters, moving, other, state, out).status().code(),
                ErrorCode::kInvalidArgument);
      EXPECT_EQ(bits_of(moving), bits_of(before));
      EXPECT_EQ(state.threshold, 0.7f);
      EXPECT_EQ(state.records, 3u);
    }
  }
}

// Long enough for records that are written past the caches, and for samples.
TEST_P(EncodeDeltaTest, EncodesMillionsAlikeOnEveryBackend) {
  static const std::vector<float> parameters = gaussian(2'000'003);
  static const std::vector<float> view = laplace(2'000'003);
  const auto run = [&](const Kernels& kernels) {
    const auto codec = make_codec(GetParam(), kernels);
    std::pair<Bytes, std::vector<float>> result{Bytes(codec->max_encoded_bytes(view.size())), view};
    CodecState state{.key = 1};
    const auto size = codec->encode_delta(parameters, result.second, result.second, state, result.first);
    result.first.resize(size.ok() ? *size : 0);
    return result;
  };
  const auto expected = run(scalar_kernels());
  EXPECT_FALSE(expected.first.empty());
  for (const Kernels* kernels : available_kernels()) {
    const auto result = run(*kernels);
    EXPECT_TRUE(result.first == expected.first) << kernels->name;
    EXPECT_EQ(std::memcmp(result.second.data(), expected.second.data(), view.size() * sizeof(float)), 0);
  }
}

// The protocol's invariant: both sides apply the same bytes and hold the same bits, round after round.
TEST_P(EncodeDeltaTest, AnchorAndViewStayTheSameBits) {
  const std::vector<float> parameters = gaussian(3000, 7);
  const auto receiver = make_codec(GetParam(), scalar_kernels());
  std::vector<float> view = gaussian(3000, 8);
  std::vector<float> anchor = view;
  Bytes out(codec_->max_encoded_bytes(3000));
  CodecState state;
  for (int round = 0; round < 20; ++round) {
    const auto size = codec_->encode_delta(parameters, view, view, state, out);
    ASSERT_TRUE(size.ok());
    ASSERT_TRUE(receiver->accumulate(std::span(out).first(*size), 1.0f, anchor).ok());
  }
  EXPECT_EQ(bits_of(view), bits_of(anchor));
  EXPECT_LT(nmse(parameters, view), 0.8);  // It started at 2; topk 1 % has sent a fifth.
}

INSTANTIATE_TEST_SUITE_P(EveryCodec, EncodeDeltaTest, testing::ValuesIn(all_codecs()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace isthmus::compression
