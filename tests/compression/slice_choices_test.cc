// The estimates, beside what the codecs lose.

#include "compression/slice_choices.h"

#include <gtest/gtest.h>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using core::CodecKind;

constexpr std::size_t kElements = 200'000;

SliceChange change_of(std::span<const float> values) {
  SliceChange change{values.size(), {}, false};
  change.magnitudes.add(values);
  return change;
}

double lost(const core::CodecConfig& config, std::span<const float> values, std::size_t& bytes) {
  const auto codec = make_codec(config);
  const Bytes record = encode(*codec, values);
  bytes = record.size();
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(codec->decode(record, decoded).ok());
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    error += (double{values[i]} - decoded[i]) * (double{values[i]} - decoded[i]);
  return error;
}

TEST(SliceChoicesTest, DenseOnesLoseAboutWhatIsSaid) {
  const std::vector<float> values = gaussian(kElements, 3, 0.01f);
  const SliceChange change = change_of(values);
  const SliceChoices choices(change, 1e-4);
  EXPECT_NEAR(choices.energy(), kElements * 1e-4, 0.03 * kElements * 1e-4);
  const CodecKind kinds[] = {CodecKind::kInt4, CodecKind::kInt8, CodecKind::kFp16, CodecKind::kFp32};
  ASSERT_EQ(choices.dense().size(), std::size(kinds));
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    const SliceChoice& choice = choices.dense()[i];
    EXPECT_EQ(choice.config.kind, kinds[i]);
    std::size_t bytes = 0;
    const double exact = lost(choice.config, values, bytes);
    EXPECT_NEAR(choice.loss, exact, 0.35 * exact) << i;
    EXPECT_EQ(choice.bytes, bytes);
  }
}

TEST(SliceChoicesTest, SparseOnesLoseAboutWhatIsSaid) {
  const std::vector<float> values = gaussian(kElements, 4);
  const SliceChange change = change_of(values);
  const SliceChoices choices(change, 1e-4);
  // Of a normal distribution these thresholds leave 10 %, 1 % and 0.1 %, with 0.561, 0.915 and 0.987 of the
  // energy below (docs/compression.md's table of references).
  const struct {
    double threshold, keep, nmse;
  } cases[] = {{1.6449, 0.1, 0.561}, {2.5758, 0.01, 0.915}, {3.2905, 0.001, 0.987}};
  for (const auto& expected : cases) {
    const SliceChoice choice = choices.sparse(expected.threshold);
    EXPECT_EQ(choice.config.kind, CodecKind::kTopk);
    EXPECT_NEAR(choice.config.keep, expected.keep, 0.08 * expected.keep);
    EXPECT_NEAR(choice.loss / kElements, expected.nmse, 0.03);
    std::size_t bytes = 0;
    (void)lost(choice.config, values, bytes);
    EXPECT_LE(bytes, choice.bytes);
  }
}

TEST(SliceChoicesTest, KeepingAllLosesByRoundingStill) {
  const std::vector<float> values = gaussian(kElements, 5);
  const SliceChange change = change_of(values);
  const SliceChoices choices(change, 1e-4);
  const SliceChoice all = choices.sparse(0);
  EXPECT_EQ(all.config.keep, 1.0);
  EXPECT_NEAR(all.loss / kElements, 4.8e-5, 2e-5);
}

TEST(SliceChoicesTest, TheLeastIsKeptWhateverTheThreshold) {
  const std::vector<float> values = gaussian(kElements, 6);
  const SliceChange change = change_of(values);
  EXPECT_EQ(SliceChoices(change, 1e-3).sparse(1e9).config.keep, 1e-3);
  const std::vector<float> few = gaussian(10);
  const SliceChange small = change_of(few);
  EXPECT_EQ(SliceChoices(small, 1e-3).sparse(1e9).config.keep, 0.1);
}

TEST(SliceChoicesTest, ASampleIsScaledUp) {
  const std::vector<float> values = gaussian(kElements, 7);
  SliceChange change{10 * values.size(), {}, false};
  change.magnitudes.add(values);
  EXPECT_NEAR(SliceChoices(change, 1e-4).energy(), 10.0 * kElements, 0.3 * kElements);
}

}  // namespace
}  // namespace isthmus::compression
