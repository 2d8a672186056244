#include "apps/table.h"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus::apps {
namespace {

TEST(TableTest, ColumnsLineUp) {
  Table table({"region", ">steps", "note"});
  table.add({"frankfurt", "7", "fine"});
  table.add({"rio", "12345"});
  EXPECT_EQ(table.to_string(),
            "region     steps  note\n"
            "frankfurt      7  fine\n"
            "rio        12345\n");
}

TEST(TableTest, MayBeIndentedAndEmpty) { EXPECT_EQ(Table({">a", "bc"}).to_string(2), "  a  bc\n"); }

TEST(TableTest, CountsAreReadable) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
  EXPECT_EQ(count_of(1, "server"), "1 server");
  EXPECT_EQ(count_of(0, "server"), "0 servers");
  EXPECT_EQ(count_of(235146, "element"), "235,146 elements");
}

}  // namespace
}  // namespace isthmus::apps
