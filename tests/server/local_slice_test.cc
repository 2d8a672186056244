#include "server/local_slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace isthmus::server {
namespace {

using compression::Codec;

core::SharedBytes record_of(const Codec& codec, std::span<const float> values) {
  core::Buffer buffer(codec.max_encoded_bytes(values.size()));
  compression::CodecState state;
  const std::size_t bytes = codec.encode(values, state, buffer.writable());
  return std::move(buffer).share(bytes);
}

class LocalSliceTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kElements = 5;

  static core::Slice shape() { return {0, {0}, 0, kElements}; }
  WorkerContribution gradient(std::uint64_t samples, float value) const {
    const std::vector<float> values(kElements, value);
    return {samples, codec_.get(), record_of(*codec_, values)};
  }
  float first(const LocalSlice& slice) const { return slice.parameters().read()[0]; }

  std::unique_ptr<const Optimizer> sgd_ = make_optimizer({.learning_rate = 1.0f});
  std::unique_ptr<const Codec> codec_ = compression::make_codec(core::CodecConfig{core::CodecKind::kFp32});
  std::vector<float> scratch_ = std::vector<float>(kElements + 3);
};

// Batches of {77, 77, 38} samples and gradients {1, 2, 4}: the mean is 383/192.
TEST_F(LocalSliceTest, TheMeanIsWeightedBySamples) {
  LocalSlice slice(shape(), *sgd_);
  EXPECT_TRUE(slice.collect(0, 0, gradient(77, 1)));
  EXPECT_TRUE(slice.collect(0, 1, gradient(77, 2)));
  EXPECT_TRUE(slice.collect(0, 2, gradient(38, 4)));
  EXPECT_EQ(slice.collected(0), 3u);
  EXPECT_EQ(first(slice), 0.0f);
  slice.commit_collected(0, *sgd_, 1.0f, scratch_);
  for (const float value : slice.parameters().read()) EXPECT_NEAR(value, -1.9947916667, 1e-6);
  EXPECT_EQ(slice.take_untold_samples(), 192u);
  EXPECT_EQ(slice.take_untold_samples(), 0u);
  EXPECT_EQ(slice.commits(), 1u);
  EXPECT_EQ(slice.version(), 1u);
  EXPECT_EQ(slice.committed_step(), 1u);
  EXPECT_EQ(slice.collected(0), 0u);
}

// Card BSP: w = 1, eta = .1, g = {.2, .4, .9} -> .95
TEST_F(LocalSliceTest, EqualSamplesGiveThePlainMean) {
  LocalSlice slice(shape(), *sgd_);
  for (float& value : slice.parameters().write()) value = 1;
  const float gradients[] = {.2f, .4f, .9f};
  for (std::uint32_t worker = 0; worker < 3; ++worker)
    slice.collect(0, worker, gradient(64, gradients[worker]));
  slice.commit_collected(0, *sgd_, .1f, scratch_);
  EXPECT_NEAR(first(slice), .95, 1e-6);
}

// Card ASP: two workers computed g = 1 at w = 1: .9 after the first, .8 after the second.
TEST_F(LocalSliceTest, ContributionsMayBeFoldedOneByOne) {
  LocalSlice slice(shape(), *sgd_);
  for (float& value : slice.parameters().write()) value = 1;
  slice.commit(0, gradient(10, 1), *sgd_, .1f, scratch_);
  EXPECT_NEAR(first(slice), .9, 1e-6);
  slice.commit(1, gradient(30, 1), *sgd_, .1f, scratch_);
  EXPECT_NEAR(first(slice), .8, 1e-6);
  EXPECT_EQ(slice.take_untold_samples(), 40u);
  EXPECT_EQ(slice.commits(), 2u);
}

TEST_F(LocalSliceTest, TheOrderOfArrivalDoesNotChangeABit) {
  // Values whose sum in another order is another float.
  const float gradients[] = {1e8f, 1.0f / 3, -1e8f, 0.7f};
  std::array<std::uint32_t, 4> order = {0, 1, 2, 3};
  std::optional<float> expected;
  do {
    LocalSlice slice(shape(), *sgd_);
    for (const std::uint32_t worker : order)
      slice.collect(0, worker, gradient(3 + worker, gradients[worker]));
    slice.commit_collected(0, *sgd_, 1.0f, scratch_);
    const float got = first(slice);
    if (!expected) expected = got;
    ASSERT_EQ(std::memcmp(&got, &*expected, sizeof(float)), 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(LocalSliceTest, ASecondContributionOfAStepIsNotTaken) {
  LocalSlice slice(shape(), *sgd_);
  EXPECT_TRUE(slice.collect(0, 3, gradient(1, 1)));
  EXPECT_FALSE(slice.collect(0, 3, gradient(1, 100)));
  EXPECT_TRUE(slice.has_collected(0, 3));
  EXPECT_FALSE(slice.has_collected(0, 0));
  EXPECT_FALSE(slice.has_collected(1, 3));
  slice.commit_collected(0, *sgd_, 1.0f, scratch_);
  EXPECT_EQ(first(slice), -1.0f);
  EXPECT_FALSE(slice.collect(0, 4, gradient(1, 100))) << "the step is committed";
  EXPECT_TRUE(slice.collecting().empty());
}

TEST_F(LocalSliceTest, StepsAreCollectedSideBySide) {
  LocalSlice slice(shape(), *sgd_);
  slice.collect(0, 0, gradient(1, 1));
  slice.collect(1, 0, gradient(1, 2));
  EXPECT_EQ(slice.collecting(), (std::vector<Step>{0, 1}));
  slice.commit_collected(0, *sgd_, 1.0f, scratch_);
  EXPECT_EQ(first(slice), -1.0f);
  EXPECT_EQ(slice.collecting(), std::vector<Step>{1});
  EXPECT_EQ(slice.committed_step(), 1u);
}

TEST_F(LocalSliceTest, ASnapshotIsNotChangedByLaterCommits) {
  LocalSlice slice(shape(), *sgd_);
  const auto before = slice.parameters().share();
  slice.commit(0, gradient(1, 1), *sgd_, 1.0f, scratch_);
  const auto after = slice.parameters().share();
  slice.commit(0, gradient(1, 1), *sgd_, 1.0f, scratch_);
  EXPECT_EQ(before[0], 0.0f);
  EXPECT_EQ(after[0], -1.0f);
  EXPECT_EQ(first(slice), -2.0f);
}

TEST_F(LocalSliceTest, EachVersionIsEncodedOnce) {
  const auto fp16 = compression::make_codec(core::CodecConfig{core::CodecKind::kFp16});
  LocalSlice slice(shape(), *sgd_);
  slice.commit(0, gradient(1, 1), *sgd_, 1.0f, scratch_);
  const core::SharedBytes once = slice.encoded(*fp16);
  EXPECT_EQ(once.size(), 2 * kElements);
  EXPECT_EQ(slice.encoded(*fp16).view.data(), once.view.data());
  slice.commit(0, gradient(1, 1), *sgd_, 1.0f, scratch_);
  const core::SharedBytes again = slice.encoded(*fp16);
  std::vector<float> values(kElements);
  ASSERT_TRUE(fp16->decode(once.view, values).ok());
  EXPECT_EQ(values[0], -1.0f);
  ASSERT_TRUE(fp16->decode(again.view, values).ok());
  EXPECT_EQ(values[0], -2.0f);
}

TEST_F(LocalSliceTest, AsFp32TheSnapshotItselfIsSent) {
  LocalSlice slice(shape(), *sgd_);
  slice.commit(0, gradient(1, 1), *sgd_, 1.0f, scratch_);
  const core::SharedBytes record = slice.encoded(*codec_);
  EXPECT_EQ(static_cast<const void*>(record.view.data()), slice.parameters().read().data());
  slice.commit(0, gradient(1, 1), *sgd_, 1.0f, scratch_);
  std::vector<float> values(kElements);
  ASSERT_TRUE(codec_->decode(record.view, values).ok());
  EXPECT_EQ(values[0], -1.0f);
}

TEST_F(LocalSliceTest, CompressedContributionsFoldToo) {
  const auto topk = compression::make_codec(core::CodecConfig{core::CodecKind::kTopk, 0.2});
  const std::vector<float> values = {0, 0, 8, 0, 0};
  LocalSlice slice(shape(), *sgd_);
  slice.collect(0, 0, gradient(1, 1));
  slice.collect(0, 1, {1, topk.get(), record_of(*topk, values)});
  slice.commit_collected(0, *sgd_, 1.0f, scratch_);
  EXPECT_EQ(slice.parameters().read()[2], -4.5f);
  EXPECT_EQ(slice.parameters().read()[1], -0.5f);
}

TEST_F(LocalSliceTest, TheOptimizersStateStaysWithTheSlice) {
  const auto momentum =
      make_optimizer({.kind = core::OptimizerKind::kMomentum, .learning_rate = 1.0f, .momentum = 0.5f});
  LocalSlice slice(shape(), *momentum);
  slice.commit(0, gradient(1, 1), *momentum, 1.0f, scratch_);
  slice.commit(0, gradient(1, 1), *momentum, 1.0f, scratch_);
  EXPECT_EQ(first(slice), -2.5f);  // -1, then -(1 + 0.5)
}

TEST_F(LocalSliceTest, ParametersThatOverflowAreNoticedAtOnceAndForGood) {
  LocalSlice slice(shape(), *sgd_);
  slice.commit(0, gradient(1, 1), *sgd_, 3e38f, scratch_);
  EXPECT_FALSE(slice.diverged());
  slice.commit(0, gradient(1, 1), *sgd_, 3e38f, scratch_);
  EXPECT_TRUE(slice.diverged());
  slice.commit(0, gradient(0, 1), *sgd_, 1.0f, scratch_);
  EXPECT_TRUE(slice.diverged());
}

TEST_F(LocalSliceTest, AStepIsNewOnceForEachLifeOfAWorker) {
  LocalSlice slice(shape(), *sgd_);
  EXPECT_TRUE(slice.is_new(0, 1, 5));
  EXPECT_FALSE(slice.is_new(0, 1, 5));
  EXPECT_FALSE(slice.is_new(0, 1, 4));
  EXPECT_TRUE(slice.is_new(0, 1, 6));
  EXPECT_TRUE(slice.is_new(1, 1, 5)) << "another worker";
  EXPECT_TRUE(slice.is_new(0, 2, 4)) << "another life, whose gradients are others";
  EXPECT_FALSE(slice.is_new(0, 2, 4));
}

TEST_F(LocalSliceTest, ASkippedStepIsOver) {
  LocalSlice slice(shape(), *sgd_);
  slice.skip(4);
  EXPECT_EQ(slice.committed_step(), 5u);
  slice.skip(2);
  EXPECT_EQ(slice.committed_step(), 5u);
  EXPECT_FALSE(slice.collect(4, 0, gradient(1, 1)));
  EXPECT_EQ(slice.version(), 0u);
}

TEST_F(LocalSliceTest, AScaledGradientCountsForLessAndItsSamplesDoNot) {
  LocalSlice slice(shape(), *sgd_);
  WorkerContribution clipped = gradient(30, 8);
  clipped.scale = 0.25f;
  slice.collect(0, 0, gradient(10, 4));
  slice.collect(0, 1, clipped);
  slice.commit_collected(0, *sgd_, 1.0f, scratch_);
  EXPECT_EQ(first(slice), -(0.25f * 4 + 0.75f * 2));
  EXPECT_EQ(slice.take_untold_samples(), 40u);
  slice.commit(1, clipped, *sgd_, 1.0f, scratch_);
  EXPECT_EQ(first(slice), -2.5f - 2.0f);
}

// Card DCASGD: two workers from w = 1, g = .5 each, eta = .1, lambda = .04: .95, then .90005. MXNet's one
// backup a key would compensate the second with nothing: .9.
TEST_F(LocalSliceTest, EachWorkersDelayIsCompensatedFromWhatItPulled) {
  const core::CompensationConfig config{.lambda = 0.04f};
  LocalSlice slice(shape(), *sgd_, &config);
  for (float& value : slice.parameters().write()) value = 1;
  slice.pulled_by(0);
  slice.pulled_by(1);
  slice.commit(0, gradient(1, .5f), *sgd_, .1f, scratch_);
  EXPECT_NEAR(first(slice), .95, 1e-7);
  slice.pulled_by(0);
  slice.commit(1, gradient(1, .5f), *sgd_, .1f, scratch_);
  EXPECT_NEAR(first(slice), .90005, 1e-7);
  // Who never pulled, or has gone, is taken as it is.
  slice.forget(1);
  slice.commit(1, gradient(1, .5f), *sgd_, .1f, scratch_);
  EXPECT_NEAR(first(slice), .85005, 1e-7);
}

// A backup is a reference: nobody's values are copied for it, and it ends with the next pull.
TEST_F(LocalSliceTest, ABackupIsAReference) {
  const core::CompensationConfig config;
  LocalSlice slice(shape(), *sgd_, &config);
  slice.commit(0, gradient(1, 1), *sgd_, 1.0f, scratch_);
  const auto version = slice.parameters().share();
  slice.pulled_by(0);
  slice.pulled_by(1);
  EXPECT_EQ(version.use_count(), 4);  // Here, the slice, two workers.
  slice.commit(0, gradient(1, 1), *sgd_, 1.0f, scratch_);
  EXPECT_EQ(version.use_count(), 3);
  slice.pulled_by(0);
  slice.pulled_by(1);
  EXPECT_EQ(version.use_count(), 1);
  LocalSlice plain(shape(), *sgd_);
  plain.pulled_by(0);
  EXPECT_EQ(plain.parameters().share().use_count(), 2) << "without compensation nothing is kept";
}

// ---- After a restart of the server.

TEST_F(LocalSliceTest, GoesOnAsIfNothingHadHappened) {
  const auto adam = make_optimizer({.kind = core::OptimizerKind::kAdam, .learning_rate = 0.1f});
  const core::CompensationConfig adaptive{.adaptive = true};
  LocalSlice slice(shape(), *adam, &adaptive);
  slice.pulled_by(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(slice.is_new(3, 9, static_cast<Step>(i)));
    slice.commit(3, gradient(2, 1), *adam, 0.1f, scratch_);
  }
  const SavedSlice saved = slice.save();
  const float then = first(slice);
  slice.commit(3, gradient(2, 1), *adam, 0.1f, scratch_);
  EXPECT_EQ(saved.parameters[0], then);  // What was saved does not change any more.

  LocalSlice restored(shape(), *adam, &adaptive);
  restored.restore(saved);
  EXPECT_EQ(first(restored), then);
  EXPECT_EQ(restored.version(), 3u);
  EXPECT_EQ(restored.commits(), 3u);
  EXPECT_FALSE(restored.is_new(3, 9, 2));
  EXPECT_TRUE(restored.is_new(3, 9, 3));
  EXPECT_EQ(restored.take_untold_samples(), 6u);
  restored.commit(3, gradient(2, 1), *adam, 0.1f, scratch_);
  LocalSlice uncompensated(shape(), *adam, &adaptive);
  uncompensated.restore(saved);
  uncompensated.commit(3, gradient(2, 1), *adam, 0.1f, scratch_);
  EXPECT_EQ(first(restored), first(uncompensated));
}

TEST_F(LocalSliceTest, OptimizerAndStepsAreRestoredToTheBit) {
  const auto adam = make_optimizer({.kind = core::OptimizerKind::kAdam, .learning_rate = 0.1f});
  LocalSlice slice(shape(), *adam);
  for (Step step = 0; step < 3; ++step) {
    slice.collect(step, 0, gradient(1, 0.5f + static_cast<float>(step)));
    slice.commit_collected(step, *adam, 0.1f, scratch_);
  }
  LocalSlice restored(shape(), *adam);
  restored.restore(slice.save());
  EXPECT_EQ(restored.committed_step(), 3u);
  EXPECT_FALSE(restored.collect(2, 0, gradient(1, 1)));
  for (LocalSlice* each : {&slice, &restored}) {
    each->collect(3, 0, gradient(1, 4));
    each->commit_collected(3, *adam, 0.1f, scratch_);
  }
  EXPECT_EQ(std::memcmp(slice.parameters().read().data(), restored.parameters().read().data(),
                        kElements * sizeof(float)),
            0);
}

}  // namespace
}  // namespace isthmus::server
