#include "trainer/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace isthmus::models {
namespace {

using Parts = std::vector<std::vector<std::uint32_t>>;

// 10 classes in turn.
std::vector<std::uint8_t> ten_classes(std::size_t samples = 6000) {
  std::vector<std::uint8_t> labels(samples);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(i % 10);
  return labels;
}

core::DataConfig dirichlet(double alpha) {
  core::DataConfig config;
  config.split = core::SplitKind::kDirichlet;
  config.alpha = alpha;
  return config;
}

void expect_each_sample_once(const Parts& parts, std::size_t samples) {
  std::vector<std::uint32_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end());
  std::vector<std::uint32_t> expected(samples);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(all, expected);
}

// The share of a part's samples in its most frequent class, averaged over the parts.
double mean_largest_share(const Parts& parts, const std::vector<std::uint8_t>& labels) {
  double sum = 0;
  for (const auto& part : parts) {
    std::array<int, 10> count{};
    for (std::uint32_t i : part) ++count.at(labels[i]);
    sum += *std::max_element(count.begin(), count.end()) / static_cast<double>(part.size());
  }
  return sum / static_cast<double>(parts.size());
}

TEST(SplitTest, IidDealsEvenlyAndUsesEachSampleOnce) {
  const auto labels = ten_classes(6001);
  const auto parts = split_samples(labels, {}, 1, 4);
  ASSERT_TRUE(parts.ok());
  expect_each_sample_once(*parts, labels.size());
  for (const auto& part : *parts) EXPECT_NEAR(static_cast<double>(part.size()), 1500.5, 0.51);
  EXPECT_LT(mean_largest_share(*parts, labels), 0.13);  // 0.1 and four deviations of 0.0077.
}

TEST(SplitTest, FollowsFromTheSeedAlone) {
  const auto labels = ten_classes();
  for (const core::DataConfig& config : {core::DataConfig{}, dirichlet(0.5)}) {
    const auto parts = split_samples(labels, config, 7, 3);
    ASSERT_TRUE(parts.ok());
    EXPECT_EQ(*parts, *split_samples(labels, config, 7, 3));
    EXPECT_NE(*parts, *split_samples(labels, config, 8, 3));
  }
}

TEST(SplitTest, DirichletUsesEachSampleOnceAndSkewsBySmallAlpha) {
  const auto labels = ten_classes();
  std::array<double, 3> shares{};
  const std::array<double, 3> alphas{0.05, 0.5, 1000.0};
  for (std::size_t i = 0; i < alphas.size(); ++i) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto parts = split_samples(labels, dirichlet(alphas[i]), seed, 4);
      ASSERT_TRUE(parts.ok()) << parts.status().to_string();
      expect_each_sample_once(*parts, labels.size());
      shares[i] += mean_largest_share(*parts, labels) / 20;
    }
  }
  EXPECT_GT(shares[0], 0.4);
  EXPECT_GT(shares[1], 0.2);
  EXPECT_LT(shares[1], shares[0]);
  EXPECT_LT(shares[2], 0.12);
}

// The share that one of W workers has of a class is Beta(alpha, (W - 1) alpha): mean 1/W, variance
// (1/W)(1 - 1/W) / (W alpha + 1).
TEST(SplitTest, DirichletSharesHaveTheVarianceOfTheirDistribution) {
  const std::vector<std::uint8_t> one_class(1000, 0);
  constexpr int kSeeds = 2000;
  for (double alpha : {1.0, 2.0, 20.0}) {
    double sum = 0, squares = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto parts = split_samples(one_class, dirichlet(alpha), seed, 3);
      ASSERT_TRUE(parts.ok());
      const double share = static_cast<double>((*parts)[1].size()) / 1000;
      sum += share;
      squares += share * share;
    }
    const double mean = sum / kSeeds;
    const double variance = 1.0 / 3 * 2.0 / 3 / (3 * alpha + 1);
    EXPECT_NEAR(mean, 1.0 / 3, 5 * std::sqrt(variance / kSeeds)) << alpha;
    EXPECT_NEAR(squares / kSeeds - mean * mean, variance, 0.15 * variance) << alpha;
  }
}

TEST(SplitTest, TinyAlphaDoesNotUnderflow) {
  const auto labels = ten_classes();
  const auto parts = split_samples(labels, dirichlet(0.001), 1, 2);
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  expect_each_sample_once(*parts, labels.size());
  // Nearly every class is one worker's alone.
  std::array<std::array<int, 10>, 2> count{};
  for (std::size_t w = 0; w < 2; ++w)
    for (std::uint32_t i : (*parts)[w]) ++count[w].at(labels[i]);
  int whole = 0;
  for (std::size_t label = 0; label < 10; ++label) whole += count[0][label] == 0 || count[1][label] == 0;
  EXPECT_GE(whole, 8);
}

TEST(SplitTest, WhatCannotBeSplitIsAnError) {
  const auto labels = ten_classes(10);
  EXPECT_EQ(split_samples(labels, {}, 1, 11).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(split_samples(labels, {}, 1, 0).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(split_samples({}, {}, 1, 1).status().code(), ErrorCode::kInvalidArgument);
  for (double alpha : {0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(split_samples(labels, dirichlet(alpha), 1, 2).status().code(), ErrorCode::kInvalidArgument);
  // One class and alpha so small that one worker takes it whole: no draw serves all eight.
  const std::vector<std::uint8_t> one_class(10, 0);
  const Status status = split_samples(one_class, dirichlet(0.001), 1, 8).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("larger alpha"), std::string::npos) << status.message();
}

TEST(SplitTest, WorkersAreCountedThroughTheRegions) {
  core::JobConfig config;
  config.regions.resize(2);
  config.regions[0].name = "frankfurt";
  config.regions[0].workers = 2;
  config.regions[1].name = "virginia";
  config.regions[1].workers = 3;
  const auto first = worker_place(config, "frankfurt", 1);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->worker, 1u);
  EXPECT_EQ(first->workers, 5u);
  EXPECT_EQ(worker_place(config, "virginia", 0)->worker, 2u);
  EXPECT_EQ(worker_place(config, "virginia", 2)->worker, 4u);
  EXPECT_EQ(worker_place(config, "frankfurt", 2).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(worker_place(config, "tokyo", 0).status().code(), ErrorCode::kInvalidArgument);
}

std::vector<std::uint32_t> take(BatchSampler& sampler, Step step) {
  const auto batch = sampler.batch_indices(step);
  return {batch.begin(), batch.end()};
}

TEST(BatchSamplerTest, EveryEpochHasEverySampleOnceInAnotherOrder) {
  const std::vector<std::uint32_t> samples{3, 5, 8, 13, 21, 34, 55};
  BatchSampler sampler(samples, 3, 1, 0);
  std::vector<std::uint32_t> dealt;
  for (Step step = 0; step < 70; ++step)
    for (std::uint32_t index : sampler.batch_indices(step)) dealt.push_back(index);
  std::vector<std::vector<std::uint32_t>> epochs;
  for (std::size_t i = 0; i < dealt.size(); i += samples.size()) {
    epochs.emplace_back(dealt.begin() + static_cast<std::ptrdiff_t>(i),
                        dealt.begin() + static_cast<std::ptrdiff_t>(i + samples.size()));
    EXPECT_TRUE(std::is_permutation(samples.begin(), samples.end(), epochs.back().begin()));
  }
  std::sort(epochs.begin(), epochs.end());
  EXPECT_GT(std::unique(epochs.begin(), epochs.end()) - epochs.begin(), 25);  // Of 30, among 5040 orders.
}

TEST(BatchSamplerTest, ARestartedWorkerGoesOnWithTheSameBatches) {
  std::vector<std::uint32_t> samples(100);
  std::iota(samples.begin(), samples.end(), 0u);
  BatchSampler through(samples, 32, 9, 2);
  std::vector<std::vector<std::uint32_t>> batches;
  for (Step step = 0; step < 20; ++step) batches.push_back(take(through, step));
  for (Step step : {13u, 2u, 19u, 3u, 0u}) {  // 3 spans two epochs.
    BatchSampler fresh(samples, 32, 9, 2);
    EXPECT_EQ(take(fresh, step), batches[step]);
    EXPECT_EQ(take(through, step), batches[step]);
  }
  BatchSampler other_worker(samples, 32, 9, 3), other_seed(samples, 32, 10, 2);
  EXPECT_NE(take(other_worker, 0), batches[0]);
  EXPECT_NE(take(other_seed, 0), batches[0]);
}

TEST(BatchSamplerTest, FewerSamplesThanABatchAreUsedSeveralTimes) {
  BatchSampler sampler({4, 6}, 5, 1, 0);
  const auto batch = take(sampler, 1);
  EXPECT_EQ(std::count(batch.begin(), batch.end(), 4u) + std::count(batch.begin(), batch.end(), 6u), 5);
  EXPECT_GE(std::count(batch.begin(), batch.end(), 4u), 2);
  EXPECT_GE(std::count(batch.begin(), batch.end(), 6u), 2);
}

}  // namespace
}  // namespace isthmus::models
