#include "core/suggest.h"

#include <gtest/gtest.h>

namespace isthmus::core {
namespace {

TEST(SuggestTest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("evrey", "every"), 1u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

TEST(SuggestTest, FindsTheWordThatWasMeant) {
  constexpr std::string_view kWords[] = {"strategy", "every", "weight"};
  EXPECT_EQ(nearest("evry", kWords), "every");
  EXPECT_EQ(nearest("WEIGHT", kWords), "weight");
  EXPECT_EQ(nearest("stategy", kWords), "strategy");
}

TEST(SuggestTest, SaysNothingRatherThanSomethingFarAway) {
  constexpr std::string_view kWords[] = {"s", "ms", "every"};
  EXPECT_EQ(nearest("checkpoint", kWords), "");
  EXPECT_EQ(nearest("q", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest(std::string(100'000, 'e'), kWords), "");
}

TEST(SuggestTest, ListsTheChoicesWhenNoneIsNear) {
  constexpr std::string_view kWords[] = {"bsp", "ssp", "async"};
  EXPECT_EQ(suggestion("asnyc", kWords), "; did you mean 'async'?");
  EXPECT_EQ(suggestion("quorum", kWords), "; choose from bsp, ssp, async");
}

}  // namespace
}  // namespace isthmus::core
