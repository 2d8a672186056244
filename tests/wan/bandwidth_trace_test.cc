#include "wan/bandwidth_trace.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <vector>

namespace isthmus::wan {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(BandwidthTraceTest, ReadsTimesAndRates) {
  const auto trace =
      parse_bandwidth_trace("# mobile\n\n0 10Mbps\r\n  1.5\t800kbps  # a tunnel\n2 0bps\n60 1MiB/s", "t");
  ASSERT_TRUE(trace.ok()) << trace.status().to_string();
  EXPECT_EQ(*trace, (std::vector<RateStep>{{seconds(0), 1'250'000},
                                           {milliseconds(1'500), 100'000},
                                           {seconds(2), 0},
                                           {seconds(60), 1'048'576}}));
}

TEST(BandwidthTraceTest, SaysWhereItIsWrong) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {"", "t: has no line"},
           {"# nothing\n", "t: has no line"},
           {"0 1Mbps\n\n5\n", "t:3: write a time"},
           {"0 1Mbps 2\n", "t:1: write a time"},
           {"0 1Mbps\nsoon 1Mbps\n", "t:2: 'soon' is not a time"},
           {"5s 1Mbps\n", "t:1: '5s' is not a time"},
           {"-1 1Mbps\n", "t:1: '-1' is not a time"},
           {"0 1\n", "t:1: "},
           {"0 1Mbps\n0 2Mbps\n", "t:2: times must increase"},
           {"0 1Mbps\n1 0bps\n", "t: the last rate is held"},
       }) {
    const auto trace = parse_bandwidth_trace(c.text, "t");
    ASSERT_FALSE(trace.ok()) << c.text;
    EXPECT_EQ(trace.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(trace.status().message().rfind(c.message, 0), 0u) << trace.status().to_string();
  }
}

TEST(BandwidthTraceTest, LoadsAFile) {
  const std::string path = ::testing::TempDir() + "isthmus_bandwidth_trace_test.txt";
  std::ofstream(path) << "0 8bps\n";
  const auto trace = load_bandwidth_trace(path);
  std::remove(path.c_str());
  ASSERT_TRUE(trace.ok()) << trace.status().to_string();
  EXPECT_EQ(*trace, (std::vector<RateStep>{{seconds(0), 1}}));

  const auto missing = load_bandwidth_trace(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.status().message().find(path), std::string::npos);
  EXPECT_FALSE(load_bandwidth_trace(::testing::TempDir()).ok());  // A folder.
}

}  // namespace
}  // namespace isthmus::wan
