#include "core/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace isthmus::core {
namespace {

Layout make(std::vector<TensorSpec> tensors, std::uint64_t slice_elements) {
  Result<Layout> layout = Layout::create(std::move(tensors), slice_elements);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return std::move(layout).value();
}

TEST(LayoutTest, CutsTensorsIntoSlicesOfAtMostTheSize) {
  const Layout layout = make({{"a", {3, 4}}, {"b", {}}, {"c", {5}}}, 5);
  const std::vector<Slice> expected = {
      {0, {0}, 0, 5}, {1, {0}, 5, 5}, {2, {0}, 10, 2}, {3, {1}, 0, 1}, {4, {2}, 0, 5}};
  EXPECT_TRUE(std::equal(layout.slices().begin(), layout.slices().end(), expected.begin(), expected.end()));
  EXPECT_EQ(layout.elements(), 18u);
  EXPECT_EQ(layout.slices_of({0}).size(), 3u);
  EXPECT_EQ(layout.slices_of({2}).front().id, 4u);
}

TEST(LayoutTest, HashTellsNamesShapesOrderAndSliceSizeApart) {
  const std::uint64_t hash = make({{"a", {2, 3}}, {"b", {4}}}, 8).hash();
  EXPECT_EQ(hash, make({{"a", {2, 3}}, {"b", {4}}}, 8).hash());
  EXPECT_NE(hash, make({{"a", {3, 2}}, {"b", {4}}}, 8).hash());
  EXPECT_NE(hash, make({{"b", {4}}, {"a", {2, 3}}}, 8).hash());
  EXPECT_NE(hash, make({{"a", {2, 3}}, {"c", {4}}}, 8).hash());
  EXPECT_NE(hash, make({{"a", {2, 3}}, {"b", {4}}}, 9).hash());
}

TEST(LayoutTest, RefusesTablesThatCannotBeTrained) {
  EXPECT_FALSE(Layout::create({}, 8).ok());
  EXPECT_FALSE(Layout::create({{"", {1}}}, 8).ok());
  EXPECT_FALSE(Layout::create({{std::string(256, 'n'), {1}}}, 8).ok());
  EXPECT_FALSE(Layout::create({{"a", {1}}, {"a", {1}}}, 8).ok());
  EXPECT_FALSE(Layout::create({{"a", {0}}}, 8).ok());
  EXPECT_FALSE(Layout::create({{"a", {1}}}, 0).ok());
  // The product would wrap around to a small number.
  EXPECT_FALSE(Layout::create({{"a", {1ull << 32, 1ull << 32, 1}}}, 8).ok());
  EXPECT_FALSE(Layout::create({{"a", {1ull << 40}}}, 8).ok());
}

TEST(LayoutTest, NamesTheFirstDifference) {
  const Layout here = make({{"fc1", {256, 784}}, {"fc2", {10}}}, 1024);
  EXPECT_EQ(Layout::difference(here, here), "");
  EXPECT_EQ(Layout::difference(here, make({{"fc1", {128, 784}}, {"fc2", {10}}}, 1024)),
            "tensor 0 is 'fc1' 256x784 here and 'fc1' 128x784 there");
  EXPECT_EQ(Layout::difference(here, make({{"fc1", {256, 784}}}, 1024)), "2 tensors here and 1 there");
}

TEST(PlacementTest, ShardsHoldAboutAsManyElementsEach) {
  const Layout layout = make({{"a", {1000}}, {"b", {700}}, {"c", {300}}, {"d", {10}}}, 100);
  const auto shard_of = assign_shards(layout, 3);
  std::vector<std::uint64_t> load(3, 0);
  for (const Slice& slice : layout.slices()) load[shard_of[slice.id]] += slice.elements;
  EXPECT_LE(*std::max_element(load.begin(), load.end()) - *std::min_element(load.begin(), load.end()), 100u);
}

TEST(PlacementTest, HomesFollowTheWeightsAndAvoidWeightZero) {
  const Layout layout = make({{"a", {4000}}}, 10);
  const std::vector<double> weights = {3, 1, 0};
  const auto home_of = assign_homes(layout, weights);
  EXPECT_EQ(std::count(home_of.begin(), home_of.end(), 0u), 300);
  EXPECT_EQ(std::count(home_of.begin(), home_of.end(), 1u), 100);
  EXPECT_EQ(std::count(home_of.begin(), home_of.end(), 2u), 0);
}

}  // namespace
}  // namespace isthmus::core
