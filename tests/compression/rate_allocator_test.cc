#include "compression/rate_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/random.h"
#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using core::CodecKind;

constexpr std::uint64_t kElements = 100'000;

SliceChange change_of(std::span<const float> values, bool dense = false) {
  SliceChange change{values.size(), {}, dense};
  change.magnitudes.add(values);
  return change;
}

SliceChange bell(float scale = 1.0f, std::uint64_t elements = kElements, std::uint32_t seed = 1) {
  return change_of(gaussian(elements, seed, scale));
}

Allocation allocate_once(const std::vector<SliceChange>& slices, std::uint64_t budget,
                         const AllocatorOptions& options = {}) {
  AllocatorState state;
  return allocate(slices, budget, options, state);
}

std::uint64_t kept_of(const core::CodecConfig& config, std::uint64_t elements) {
  EXPECT_EQ(config.kind, CodecKind::kTopk);
  return static_cast<std::uint64_t>(std::llround(config.keep * static_cast<double>(elements)));
}

TEST(RateAllocatorTest, ABudgetDecidesTheCodec) {
  const struct {
    double bytes_per_element;
    CodecKind kind;
  } cases[] = {{100, CodecKind::kFp32}, {4, CodecKind::kFp32},    {3.9, CodecKind::kFp16},
               {2, CodecKind::kFp16},   {1.9, CodecKind::kInt8},  {1.02, CodecKind::kInt8},
               {1.0, CodecKind::kInt4}, {0.54, CodecKind::kInt4}, {0.3, CodecKind::kTopk},
               {0.01, CodecKind::kTopk}};
  for (const auto& expected : cases) {
    const auto budget = static_cast<std::uint64_t>(expected.bytes_per_element * kElements);
    const Allocation allocation = allocate_once({bell()}, budget);
    EXPECT_EQ(allocation.codecs[0].kind, expected.kind) << expected.bytes_per_element;
    EXPECT_TRUE(allocation.fits);
    EXPECT_LE(allocation.bytes, budget);
  }
}

TEST(RateAllocatorTest, ASparseSliceSpendsItsBudget) {
  for (const std::uint64_t budget : {1'000, 5'000, 6'004, 20'000}) {
    const Allocation allocation = allocate_once({bell()}, budget);
    EXPECT_GT(allocation.bytes, 0.97 * static_cast<double>(budget)) << budget;
    EXPECT_LE(allocation.bytes, budget);
    EXPECT_GT(allocation.threshold, 0);
  }
}

TEST(RateAllocatorTest, SparseSlicesShareOneThreshold) {
  const std::vector<float> scales{1.0f, 0.5f, 2.0f, 0.9f};
  std::vector<SliceChange> slices;
  std::vector<std::vector<float>> values;
  for (const float scale : scales) {
    values.push_back(gaussian(kElements, static_cast<std::uint32_t>(values.size() + 1), scale));
    slices.push_back(change_of(values.back()));
  }
  const Allocation allocation = allocate_once(slices, 30'000);
  std::uint64_t total = 0;
  for (const auto& codec : allocation.codecs) total += kept_of(codec, kElements);

  // The exact answer: the `total` largest of all.
  std::vector<float> all;
  for (const auto& slice : values)
    for (const float value : slice) all.push_back(std::fabs(value));
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(total), std::greater<>());
  const float threshold = all[total];
  EXPECT_NEAR(allocation.threshold, threshold, 0.03 * threshold);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto exact = std::ranges::count_if(values[i], [&](float v) { return std::fabs(v) > threshold; });
    EXPECT_NEAR(static_cast<double>(kept_of(allocation.codecs[i], kElements)), static_cast<double>(exact),
                0.1 * static_cast<double>(exact) + 10)
        << i;
  }
}

TEST(RateAllocatorTest, SmallTensorsStayDense) {
  const std::vector<SliceChange> slices{bell(), change_of(gaussian(10, 2, 1e-6f), true)};
  for (const std::uint64_t budget : {2'000, 150'000, 250'000}) {
    const Allocation allocation = allocate_once(slices, budget);
    EXPECT_EQ(allocation.codecs[1].kind, CodecKind::kFp32);
    EXPECT_TRUE(allocation.fits);
  }
}

TEST(RateAllocatorTest, NoSliceIsForgotten) {
  // The second slice would get nothing by the threshold: it has its floor, and one that changes not at all
  // too.
  const std::vector<SliceChange> slices{bell(), bell(1e-6f), change_of(std::vector<float>(kElements))};
  const Allocation allocation = allocate_once(slices, 20'000, {.min_keep = 1e-3});
  EXPECT_EQ(kept_of(allocation.codecs[1], kElements), 100u);
  EXPECT_EQ(kept_of(allocation.codecs[2], kElements), 100u);
  EXPECT_GT(kept_of(allocation.codecs[0], kElements), 2'000u);
}

TEST(RateAllocatorTest, ABudgetBelowTheFloorsIsSaidAndTheFloorsAreGiven) {
  const std::vector<SliceChange> slices{bell(), change_of(gaussian(500), true)};
  const Allocation allocation = allocate_once(slices, 1'000);
  EXPECT_FALSE(allocation.fits);
  EXPECT_EQ(kept_of(allocation.codecs[0], kElements), 10u);  // 1e-4
  EXPECT_EQ(allocation.codecs[1].kind, CodecKind::kFp32);
  EXPECT_EQ(allocation.bytes, make_codec(allocation.codecs[0])->max_encoded_bytes(kElements) + 2'000);
}

TEST(RateAllocatorTest, NothingToSendIsNoProblem) {
  EXPECT_EQ(allocate_once({}, 0).bytes, 0u);
  const Allocation allocation = allocate_once({SliceChange{}}, 100);
  EXPECT_TRUE(allocation.fits);
}

TEST(RateAllocatorTest, ASampleWillDo) {
  const std::vector<float> values = gaussian(1'000'000, 5);
  SliceChange sampled{values.size(), {}, false};
  sampled.magnitudes.add_sample(values, 65'536);
  const Allocation exact = allocate_once({change_of(values)}, 60'000);
  const Allocation allocation = allocate_once({sampled}, 60'000);
  EXPECT_NEAR(allocation.threshold, exact.threshold, 0.05 * exact.threshold);
  EXPECT_LE(allocation.bytes, 60'000u);
}

// How often a kind changes while two slices take turns in being the larger one, by 2 %, and there are bytes
// for one of them to be int4.
int flips(double hysteresis) {
  AllocatorState state;
  int flips = 0;
  std::vector<core::CodecConfig> before;
  for (int i = 0; i < 20; ++i) {
    const float first = i % 2 == 0 ? 1.02f : 1.0f;
    const std::vector<SliceChange> slices{bell(first), bell(2.02f - first)};
    const Allocation allocation = allocate(slices, 60'000, {.hysteresis = hysteresis}, state);
    EXPECT_NE(allocation.codecs[0].kind, allocation.codecs[1].kind);
    EXPECT_LE(allocation.bytes, 60'000u);
    for (std::size_t s = 0; s < before.size(); ++s) flips += allocation.codecs[s].kind != before[s].kind;
    before = allocation.codecs;
  }
  return flips;
}

TEST(RateAllocatorTest, ASliceDoesNotFlap) {
  EXPECT_EQ(flips(0.1), 0);
  EXPECT_EQ(flips(0.0), 2 * 19);  // Which is what hysteresis is for.
}

TEST(RateAllocatorTest, BytesBetweenTwoKindsAreWellSpent) {
  // Twice 30'000 bytes of topk would lose more than int4 for the one and what is left for the other.
  const Allocation allocation = allocate_once({bell(1.5f), bell(1.0f, kElements, 2)}, 60'000);
  EXPECT_EQ(allocation.codecs[0].kind, CodecKind::kInt4);
  EXPECT_EQ(allocation.codecs[1].kind, CodecKind::kTopk);
  EXPECT_GT(allocation.bytes, 58'000u);
}

TEST(RateAllocatorTest, WhatIsMuchBetterIsTakenAtOnce) {
  AllocatorState state;
  const Allocation before = allocate(std::vector<SliceChange>{bell(2.0f), bell(1.0f)}, 60'000, {}, state);
  EXPECT_EQ(before.codecs[0].kind, CodecKind::kInt4);
  const Allocation after = allocate(std::vector<SliceChange>{bell(1.0f), bell(2.0f)}, 60'000, {}, state);
  EXPECT_EQ(after.codecs[1].kind, CodecKind::kInt4);
}

TEST(RateAllocatorTest, AGrowingChangeIsCompressedLess) {
  AllocatorState state;
  Allocation allocation;
  float scale = 1.0f;
  for (int i = 0; i < 6; ++i, scale *= 1.5f) {
    // Two of the same size, of which one has come to it just now.
    const std::vector<SliceChange> slices{bell(scale), bell(scale, kElements, 2), bell(1.0f, kElements, 3)};
    allocation = allocate(slices, 20'000, {}, state);
    if (i > 0) {
      state.slices[1].usual_norm = 1e9;
      state.slices[1].urgency = 1;
    }
  }
  const auto growing = kept_of(allocation.codecs[0], kElements);
  const auto steady = kept_of(allocation.codecs[1], kElements);
  EXPECT_GT(growing, 2 * steady);
  EXPECT_LE(allocation.bytes, 20'000u);
  EXPECT_EQ(state.slices[0].urgency, 16);
  for (int i = 0; i < 10; ++i) {
    allocation = allocate(std::vector<SliceChange>{bell(), bell(), bell()}, 20'000, {}, state);
  }
  EXPECT_EQ(state.slices[0].urgency, 1);
}

TEST(RateAllocatorTest, AsksForMoreWhileAllChangesGrow) {
  AllocatorState state;
  float scale = 1.0f;
  double stretch = 1;
  for (int i = 0; i < 40; ++i, scale *= 1.4f) {
    const Allocation allocation =
        allocate(std::vector<SliceChange>{bell(scale), bell(scale)}, 20'000, {}, state);
    EXPECT_GE(allocation.stretch, stretch);
    stretch = allocation.stretch;
  }
  EXPECT_EQ(stretch, 4.0);
  for (int i = 0; i < 40; ++i)
    stretch = allocate(std::vector<SliceChange>{bell(scale), bell(scale)}, 20'000, {}, state).stretch;
  EXPECT_EQ(stretch, 1.0);
}

TEST(RateAllocatorTest, ANewNumberOfSlicesStartsAfresh) {
  AllocatorState state;
  (void)allocate(std::vector<SliceChange>{bell()}, 20'000, {}, state);
  state.slices[0].urgency = 8;
  (void)allocate(std::vector<SliceChange>{bell(), bell()}, 20'000, {}, state);
  ASSERT_EQ(state.slices.size(), 2u);
  EXPECT_EQ(state.slices[0].urgency, 1);
}

// Any mixture of slices and any budget: what the codecs write fits, the same twice, and a larger budget never
// loses more (but for what is estimated).
TEST(RateAllocatorTest, NeverSpendsMoreThanThereIs) {
  core::Random random(1, {0x72617465, 0, 0});
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<float>> values;
    std::vector<SliceChange> slices;
    std::uint64_t elements = 0;
    const std::uint32_t count = 1 + random.below(12);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t n = random.below(3) == 0 ? random.below(300) : 1'000 + random.below(20'000);
      const auto scale = static_cast<float>(std::exp(3 * random.normal()));
      values.push_back(gaussian(n, random.next_u32(), scale));
      if (random.below(4) == 0)
        for (float& value : values.back()) value = std::pow(value, 3.0f);
      slices.push_back(change_of(values.back(), n < 300));
      elements += n;
    }
    const double per_element = 5 * std::pow(random.uniform(), 3);
    const auto budget = static_cast<std::uint64_t>(per_element * static_cast<double>(elements));
    AllocatorState state, twin;
    for (int again = 0; again < 3; ++again) {
      const Allocation allocation = allocate(slices, budget, {}, state);
      const Allocation same = allocate(slices, budget, {}, twin);
      ASSERT_EQ(allocation.codecs.size(), slices.size());
      EXPECT_EQ(allocation.bytes, same.bytes);
      std::uint64_t written = 0;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        EXPECT_EQ(allocation.codecs[i].kind, same.codecs[i].kind);
        EXPECT_EQ(allocation.codecs[i].keep, same.codecs[i].keep);
        written += encode(*make_codec(allocation.codecs[i]), values[i]).size();
      }
      EXPECT_LE(written, allocation.bytes);
      if (allocation.fits) {
        EXPECT_LE(allocation.bytes, budget) << round;
      } else {
        EXPECT_GT(allocation.bytes, budget) << round;
        EXPECT_LT(budget, 0.05 * static_cast<double>(elements) + 1'300.0 * count) << round;
      }
    }
  }
}

TEST(RateAllocatorTest, LosesLessThanTheSameShareOfEverySlice) {
  std::vector<std::vector<float>> values;
  std::vector<SliceChange> slices;
  for (const float scale : {0.01f, 0.1f, 1.0f, 3.0f}) {
    values.push_back(gaussian(kElements, 7, scale));
    slices.push_back(change_of(values.back()));
  }
  const auto lost = [&](const std::vector<core::CodecConfig>& codecs, std::uint64_t& bytes) {
    double error = 0;
    bytes = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto codec = make_codec(codecs[i]);
      const Bytes record = encode(*codec, values[i]);
      std::vector<float> decoded(values[i].size());
      EXPECT_TRUE(codec->decode(record, decoded).ok());
      bytes += record.size();
      for (std::size_t k = 0; k < decoded.size(); ++k)
        error += (double{values[i][k]} - decoded[k]) * (double{values[i][k]} - decoded[k]);
    }
    return error;
  };
  std::uint64_t same_bytes = 0, bytes = 0;
  const double same = lost(std::vector<core::CodecConfig>(4, {CodecKind::kTopk, 0.02}), same_bytes);
  const double ours = lost(allocate_once(slices, same_bytes).codecs, bytes);
  EXPECT_LE(bytes, same_bytes);
  EXPECT_LT(ours, 0.9 * same);
}

}  // namespace
}  // namespace isthmus::compression
