#include "compression/delta.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <limits>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

TEST(EncodeDeltaTest, EncodesTheDifferenceAndSaysWhatWasSent) {
  const std::vector<float> a = gaussian(1000, 1);
  const std::vector<float> b = gaussian(1000, 2);
  std::vector<float> delta(1000);
  for (std::size_t i = 0; i < 1000; ++i) delta[i] = a[i] - b[i];
  for (const core::CodecConfig& config : all_codecs()) {
    const auto codec = make_codec(config);
    CodecState state;
    std::vector<float> decoded(1000);
    Bytes out(codec->max_encoded_bytes(1000));
    const Result<std::size_t> size = encode_delta(a, b, {}, *codec, state, decoded, out);
    ASSERT_TRUE(size.ok());
    out.resize(*size);
    EXPECT_EQ(out, encode(*codec, delta));
    std::vector<float> expected(1000);
    ASSERT_TRUE(codec->decode(out, expected).ok());
    EXPECT_EQ(bits_of(decoded), bits_of(expected));
  }
}

TEST(EncodeDeltaTest, SubtractsWhatIsInFlight) {
  const auto codec = make_codec({});
  CodecState state;
  std::vector<float> decoded(2);
  Bytes out(8);
  ASSERT_TRUE(encode_delta(std::vector<float>{5.0f, 1.0f}, std::vector<float>{1.0f, 2.0f},
                           std::vector<float>{0.5f, -3.0f}, *codec, state, decoded, out)
                  .ok());
  EXPECT_EQ(decoded, (std::vector<float>{3.5f, 2.0f}));
}

TEST(EncodeDeltaTest, RefusesWhatIsNotFiniteBeforeAnythingMoves) {
  const auto codec = make_codec({core::CodecKind::kTopk, 0.5});
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> zeros(2, 0.0f);
  for (const auto& [a, b] : {std::pair{inf, 0.0f}, {std::nanf(""), 0.0f}, {FLT_MAX, -FLT_MAX}, {inf, inf}}) {
    CodecState state{0.25f};
    std::vector<float> decoded(2);
    Bytes out(codec->max_encoded_bytes(2), std::byte{0xee});
    const Bytes before = out;
    const auto result = encode_delta(std::vector<float>{1.0f, a}, std::vector<float>{0.0f, b}, zeros, *codec,
                                     state, decoded, out);
    EXPECT_EQ(result.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(out, before);
    EXPECT_EQ(state.threshold, 0.25f);
  }
}

// The protocol's invariant: both sides apply the same bytes and hold the same bits, round after round.
TEST(EncodeDeltaTest, AnchorAndViewStayTheSameBits) {
  const std::vector<float> parameters = gaussian(3000, 7);
  for (const core::CodecConfig& config : all_codecs()) {
    const auto sender = make_codec(config);
    const auto receiver = make_codec(config, scalar_kernels());
    std::vector<float> view = gaussian(3000, 8);
    std::vector<float> anchor = view;
    std::vector<float> decoded(3000);
    Bytes out(sender->max_encoded_bytes(3000));
    CodecState state;
    for (int round = 0; round < 20; ++round) {
      const auto size = encode_delta(parameters, view, {}, *sender, state, decoded, out);
      ASSERT_TRUE(size.ok());
      ASSERT_TRUE(sender->accumulate(std::span(out).first(*size), 1.0f, view).ok());
      ASSERT_TRUE(receiver->accumulate(std::span(out).first(*size), 1.0f, anchor).ok());
    }
    EXPECT_EQ(bits_of(view), bits_of(anchor));
    EXPECT_LT(nmse(parameters, view), 0.8);  // It started at 2; topk has sent a fifth.
  }
}

}  // namespace
}  // namespace isthmus::compression
