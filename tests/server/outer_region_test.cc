#include "server/outer_region.h"

#include <cmath>
#include <limits>

#include "tests/server/outer_support.h"

namespace isthmus::server {
namespace {

using core::CodecKind;
using Outcome = OuterRegion::Outcome;

constexpr std::uint64_t kIncarnation = 7;
constexpr std::size_t kElements = 4;

// A region of four elements, all equal unless said otherwise, whose home is the test.
class OuterRegionTest : public testing::Test {
 protected:
  explicit OuterRegionTest(CodecKind kind = CodecKind::kFp32)
      : codec_(codec_of(kind)), region_(kElements, kIncarnation, *codec_), parameters_(kElements) {}

  static std::vector<float> all(float value) { return std::vector<float>(kElements, value); }
  static Reset reset(std::uint64_t round, float value, std::uint64_t folded,
                     std::uint64_t incarnation = kIncarnation) {
    return {
        .id = {1, round}, .folded = {incarnation, folded}, .final = false, .values = bytes_of(all(value))};
  }
  static GlobalDelta delta(std::uint64_t base, std::uint64_t round, float value, std::uint64_t folded,
                           std::uint64_t incarnation = kIncarnation) {
    return {.base = {1, base},
            .id = {1, round},
            .folded = {incarnation, folded},
            .checksum = {},
            .codec = kFp32,
            .record = bytes_of(all(value))};
  }
  template <typename Message>
  Outcome apply(const Message& message) {
    auto outcome = region_.apply(message, parameters_);
    EXPECT_TRUE(outcome.ok()) << outcome.status().to_string();
    return outcome.ok() ? *outcome : Outcome::kIgnored;
  }
  void train(float step) {
    for (float& p : parameters_.write()) p += step;
  }
  Contribution start(bool final = false) {
    auto contribution = region_.start(parameters_.read(), 64, final);
    EXPECT_TRUE(contribution.ok()) << contribution.status().to_string();
    return contribution.ok() ? *contribution : Contribution{};
  }
  std::vector<float> parameters() const { return {parameters_.read().begin(), parameters_.read().end()}; }
  std::vector<float> anchor() const { return floats_of(region_.anchor(), kElements); }
  void expect(float parameters_value, float anchor_value) const {
    EXPECT_EQ(parameters(), all(parameters_value));
    EXPECT_EQ(anchor(), all(anchor_value));
  }

  std::unique_ptr<const compression::Codec> codec_;
  OuterRegion region_;
  core::VersionedFloats parameters_;
};
class OuterRegionTopkTest : public OuterRegionTest {
 protected:
  OuterRegionTopkTest() : OuterRegionTest(CodecKind::kTopk) {}  // Keeps one of the four.
};
class OuterRegionFp16Test : public OuterRegionTest {
 protected:
  OuterRegionFp16Test() : OuterRegionTest(CodecKind::kFp16) {}
};

TEST_F(OuterRegionTest, TheFirstResetBringsTheAnchorAndTheParameters) {
  train(99);  // This region's own start values: the home's win.
  EXPECT_FALSE(region_.has_anchor());
  EXPECT_FALSE(region_.idle());
  EXPECT_EQ(apply(delta(0, 1, 1, 0)), Outcome::kNeedReset);
  EXPECT_EQ(apply(reset(3, 10, 0)), Outcome::kApplied);
  expect(10, 10);
  EXPECT_TRUE(region_.idle());
  EXPECT_EQ(region_.ack().id, (AnchorId{1, 3}));
  EXPECT_EQ(region_.ack().incarnation, kIncarnation);
}

TEST_F(OuterRegionTest, AContributionIsTheDifferenceToTheAnchor) {
  apply(reset(3, 10, 0));
  train(4);
  const Contribution c = start();
  EXPECT_EQ(c.id, (ContributionId{kIncarnation, 1}));
  EXPECT_EQ(c.base, (AnchorId{1, 3}));
  EXPECT_EQ(c.samples, 64u);
  EXPECT_FALSE(c.final);
  EXPECT_EQ(decoded(c.codec, c.record, kElements), all(4));
  expect(14, 10);
}

// Rule 1: one at a time; and whoever asks gets the same bytes.
TEST_F(OuterRegionTest, OneContributionAtATimeAndTheSameBytesAgain) {
  apply(reset(0, 10, 0));
  train(4);
  const Contribution c = start();
  EXPECT_FALSE(region_.idle());
  train(1);
  const auto again = region_.in_flight();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, c.id);
  EXPECT_EQ(again->record.view.data(), c.record.view.data());
}

// Rule 4. Anchor 10; 4 told, then 3 more trained; the home's delta is 2.
TEST_F(OuterRegionTest, ADeltaThatFoldedOursTakesItOutOfTheParameters) {
  apply(reset(0, 10, 0));
  train(4), start(), train(3);
  EXPECT_EQ(apply(delta(0, 1, 2, 1)), Outcome::kApplied);
  expect(12 + 3, 12);
  EXPECT_TRUE(region_.idle());
  EXPECT_FALSE(region_.in_flight());
  EXPECT_EQ(region_.ack().id, (AnchorId{1, 1}));
}

TEST_F(OuterRegionTest, ADeltaThatDidNotFoldOursLeavesItInFlight) {
  apply(reset(0, 10, 0));
  train(4), start(), train(3);
  EXPECT_EQ(apply(delta(0, 1, 2, 0)), Outcome::kApplied);
  expect(12 + 4 + 3, 12);
  EXPECT_FALSE(region_.idle());
  // Another life's number says nothing about ours.
  EXPECT_EQ(apply(delta(1, 2, 1, 1, kIncarnation - 1)), Outcome::kApplied);
  EXPECT_EQ(apply(delta(2, 3, 1, 1, kIncarnation + 1)), Outcome::kApplied);
  expect(14 + 4 + 3, 14);
  EXPECT_TRUE(region_.in_flight());
}

TEST_F(OuterRegionTest, OldDeltasAreIgnoredAndUnknownBasesAskForAReset) {
  apply(reset(5, 10, 0));
  EXPECT_EQ(apply(delta(5, 6, 1, 0)), Outcome::kApplied);
  EXPECT_EQ(apply(delta(5, 6, 1, 0)), Outcome::kIgnored);  // A duplicate.
  EXPECT_EQ(apply(delta(2, 5, 1, 0)), Outcome::kIgnored);  // From before the Reset.
  EXPECT_EQ(apply(delta(7, 8, 1, 0)), Outcome::kNeedReset);
  EXPECT_EQ(apply(delta(5, 8, 1, 0)), Outcome::kNeedReset);
  GlobalDelta other_epoch = delta(6, 7, 1, 0);
  other_epoch.base.epoch = other_epoch.id.epoch = 2;
  EXPECT_EQ(apply(other_epoch), Outcome::kNeedReset);
  expect(11, 11);
  EXPECT_EQ(region_.anchor_id(), (AnchorId{1, 6}));
}

TEST_F(OuterRegionTest, AChecksumIsComparedBeforeTheAnchorMoves) {
  apply(reset(0, 10, 0));
  GlobalDelta d = delta(0, 1, 2, 0);
  d.checksum = anchor_checksum(all(12)) + 1;
  EXPECT_EQ(apply(d), Outcome::kNeedReset);
  expect(10, 10);
  d.checksum = anchor_checksum(all(12));
  EXPECT_EQ(apply(d), Outcome::kApplied);
  expect(12, 12);
}

TEST_F(OuterRegionTest, BadBytesChangeNothing) {
  apply(reset(0, 10, 0));
  train(4), start();
  GlobalDelta d = delta(0, 1, 2, 1);
  d.record = bytes_of({1, 2, 3});
  EXPECT_EQ(region_.apply(d, parameters_).status().code(), ErrorCode::kCorruption);
  d.record = bytes_of({1, 2, 3, std::nanf("")});
  EXPECT_EQ(region_.apply(d, parameters_).status().code(), ErrorCode::kCorruption);
  d.record = bytes_of(all(2)), d.codec = 77;
  EXPECT_EQ(region_.apply(d, parameters_).status().code(), ErrorCode::kProtocol);
  Reset r = reset(1, 2, 1);
  r.values = bytes_of({1, 2, 3});
  EXPECT_EQ(region_.apply(r, parameters_).status().code(), ErrorCode::kProtocol);
  r.values = bytes_of({1, 2, 3, std::numeric_limits<float>::infinity()});
  EXPECT_EQ(region_.apply(r, parameters_).status().code(), ErrorCode::kCorruption);
  expect(14, 10);
  EXPECT_TRUE(region_.in_flight());
  EXPECT_EQ(region_.anchor_id(), (AnchorId{1, 0}));
}

// A snapshot that somebody took is not written to.
TEST_F(OuterRegionTest, SnapshotsOfTheAnchorStay) {
  apply(reset(0, 10, 0));
  const auto snapshot = region_.anchor();
  apply(delta(0, 1, 2, 0));
  EXPECT_EQ(floats_of(snapshot, kElements), all(10));
}

// What the codec loses stays between parameters and anchor, and goes next.
TEST_F(OuterRegionTopkTest, WhatTheCodecLosesIsToldLater) {
  apply(reset(0, 0, 0));
  const std::vector<float> steps{8, 1, 2, 3};
  std::copy(steps.begin(), steps.end(), parameters_.write().begin());
  const Contribution first = start();
  EXPECT_EQ(decoded(first.codec, first.record, kElements), (std::vector<float>{8, 0, 0, 0}));
  EXPECT_EQ(region_.untold_squared(parameters_.read()), 1 + 4 + 9);
  apply(delta(0, 1, 0, 1));
  EXPECT_EQ(parameters(), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(region_.untold_squared(parameters_.read()), 1 + 4 + 9);
  const Contribution second = start();
  EXPECT_EQ(second.id.seq, 2u);
  EXPECT_EQ(decoded(second.codec, second.record, kElements), (std::vector<float>{0, 0, 0, 3}));
}

TEST_F(OuterRegionTopkTest, TheFinalContributionLosesNothingAndIsTheLast) {
  apply(reset(0, 0, 0));
  const std::vector<float> steps{8, 0.1f, 2, 3};
  std::copy(steps.begin(), steps.end(), parameters_.write().begin());
  const Contribution c = start(true);
  EXPECT_TRUE(c.final);
  EXPECT_EQ(c.codec, kFp32);
  EXPECT_EQ(decoded(c.codec, c.record, kElements), steps);
  apply(delta(0, 1, 0, 1));
  EXPECT_FALSE(region_.in_flight());
  EXPECT_FALSE(region_.idle());
}

// fp16 ends at 65504: the rest is told next.
TEST_F(OuterRegionFp16Test, WhatIsBeyondTheCodecsRangeIsToldLater) {
  apply(reset(0, 0, 0));
  train(65504 + 1024);
  const Contribution c = start();
  EXPECT_EQ(decoded(c.codec, c.record, kElements), all(65504));
  apply(delta(0, 1, 0, 1));
  const Contribution rest = start();
  EXPECT_EQ(decoded(rest.codec, rest.record, kElements), all(1024));
}

TEST_F(OuterRegionTest, ADifferenceThatIsNotFiniteIsRefused) {
  apply(reset(0, 0, 0));
  parameters_.write()[2] = std::nanf("");
  EXPECT_EQ(region_.start(parameters_.read(), 1, false).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(region_.idle());
  parameters_.write()[2] = 1;
  EXPECT_EQ(start().id.seq, 1u);
}

// Rule 5. Anchor 10; 4 told, 3 untold; the new anchor is 20.
TEST_F(OuterRegionTest, AResetKeepsWhatTheHomeHasNot) {
  apply(reset(0, 10, 0));
  train(4), start(), train(3);
  EXPECT_EQ(apply(reset(1, 20, 0)), Outcome::kApplied);
  expect(20 + 3 + 4, 20);
  EXPECT_TRUE(region_.in_flight());
  EXPECT_EQ(region_.in_flight()->id.seq, 1u);
}

TEST_F(OuterRegionTest, AResetThatFoldedOursTakesItOut) {
  apply(reset(0, 10, 0));
  train(4), start(), train(3);
  EXPECT_EQ(apply(reset(1, 20, 1)), Outcome::kApplied);
  expect(20 + 3, 20);
  EXPECT_TRUE(region_.idle());
}

TEST_F(OuterRegionTest, OldAndRepeatedResetsAreIgnored) {
  apply(reset(4, 10, 0));
  train(4);
  EXPECT_EQ(apply(reset(4, 10, 0)), Outcome::kIgnored);
  EXPECT_EQ(apply(reset(3, 99, 0)), Outcome::kIgnored);
  expect(14, 10);
}

// The anchor is assigned: 0.1 + (0.3 - 0.1) would not be 0.3.
TEST_F(OuterRegionTest, AResetAssignsTheAnchorAndSharesItsMemory) {
  apply(reset(0, 0.1f, 0));
  const Reset r = reset(1, 0.3f, 0);
  apply(r);
  EXPECT_EQ(anchor(), all(0.3f));
  EXPECT_EQ(static_cast<const void*>(region_.anchor().get()), static_cast<const void*>(r.values.view.data()));
}

TEST_F(OuterRegionTest, AFinalResetAssignsBoth) {
  apply(reset(0, 10, 0));
  train(4), start(), train(3);
  Reset r = reset(1, 0.7f, 0);
  r.final = true;
  EXPECT_EQ(apply(r), Outcome::kApplied);
  expect(0.7f, 0.7f);
  EXPECT_FALSE(region_.in_flight());
}

TEST_F(OuterRegionTest, AResetForAnEarlierLifeIsNotOurs) {
  EXPECT_EQ(apply(reset(0, 10, 3, kIncarnation - 1)), Outcome::kNeedReset);
  EXPECT_FALSE(region_.has_anchor());
  apply(reset(1, 20, 0));
  train(4);
  EXPECT_EQ(apply(reset(2, 10, 3, kIncarnation - 1)), Outcome::kNeedReset);
  expect(24, 20);
}

// Rule 6: the home has received more from us than we remember, so told and untold cannot be told apart.
TEST_F(OuterRegionTest, AResetThatKnowsMoreOfUsThanWeDoAssignsBothAndTheSequenceGoesOn) {
  apply(reset(0, 10, 0));
  train(4), start(), train(3);
  EXPECT_EQ(apply(reset(1, 20, 5)), Outcome::kApplied);
  expect(20, 20);
  EXPECT_TRUE(region_.idle());
  EXPECT_EQ(start().id.seq, 6u);
  EXPECT_EQ(apply(reset(2, 30, 1, kIncarnation + 1)), Outcome::kApplied);
  expect(30, 30);
}

}  // namespace
}  // namespace isthmus::server
