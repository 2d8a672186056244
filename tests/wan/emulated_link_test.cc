#include "wan/emulated_link.h"

#include <gtest/gtest.h>

#include <vector>

namespace isthmus::wan {
namespace {

using core::EmulateConfig;
using core::OutageConfig;
using std::chrono::milliseconds;
using std::chrono::seconds;

EmulatedLink make(const EmulateConfig& config, const std::vector<RateStep>& trace = {}) {
  auto link = EmulatedLink::create(config, trace, 1);
  EXPECT_TRUE(link.ok()) << link.status().to_string();
  return std::move(link).value();
}

// When a piece that is pushed each way at 0 is released.
std::array<Duration, 2> one_piece(EmulatedLink link, std::uint64_t there, std::uint64_t back) {
  link.shaper(Way::kThere).push(seconds(0), there);
  link.shaper(Way::kBack).push(seconds(0), back);
  link.advance(seconds(1'000));
  return {*link.shaper(Way::kThere).next_release(), *link.shaper(Way::kBack).next_release()};
}

TEST(EmulatedLinkTest, EachWayHasTheWholeRateAndHalfTheRoundTrip) {
  const auto times = one_piece(make({.rate_bytes_per_sec = 1'000, .rtt = milliseconds(80)}), 1'000, 2'000);
  EXPECT_EQ(times[0], milliseconds(1'040));
  EXPECT_EQ(times[1], milliseconds(2'040));
}

TEST(EmulatedLinkTest, ARateOfZeroIsNone) {
  EXPECT_EQ(one_piece(make({.rtt = milliseconds(80)}), 1 << 30, 1)[0], milliseconds(40));
}

TEST(EmulatedLinkTest, ATraceReplacesTheRateFromItsFirstStepOn) {
  const EmulateConfig config{.rate_bytes_per_sec = 1'000};
  EXPECT_EQ(one_piece(make(config, {{seconds(2), 4'000}}), 6'000, 1'000)[0], seconds(3));
  EXPECT_EQ(one_piece(make(config, {{seconds(0), 4'000}, {seconds(1), 500}}), 5'000, 1'000)[0], seconds(3));
}

TEST(EmulatedLinkTest, AnOutageByTimeStopsBothWays) {
  const EmulateConfig config{.rate_bytes_per_sec = 1'000,
                             .outages = {{.at = milliseconds(500), .length = seconds(2)}}};
  const auto times = one_piece(make(config), 1'000, 500);
  EXPECT_EQ(times[0], seconds(3));
  EXPECT_EQ(times[1], milliseconds(500));
}

TEST(EmulatedLinkTest, AnOutageByBytesBeginsWhenTheyHavePassedOneWayAndStopsTheOther) {
  EmulatedLink link =
      make({.rate_bytes_per_sec = 1'000, .outages = {{.after_bytes = 2'000, .length = seconds(10)}}});
  link.shaper(Way::kThere).push(seconds(0), 500);
  link.shaper(Way::kThere).push(seconds(0), 2'500);
  link.shaper(Way::kBack).push(seconds(0), 1'500);  // Not enough ...
  link.shaper(Way::kBack).push(seconds(0), 1'000);  // ... until 2.5 s.
  link.advance(seconds(2));
  EXPECT_EQ(link.next_event(), milliseconds(500));  // Of the release: nothing has been taken.
  link.advance(seconds(1'000));
  // The last byte of "there" was 0.5 s short when the link went out.
  EXPECT_EQ(link.shaper(Way::kThere).passed_bytes(), 3'000u);
  link.shaper(Way::kThere).release();
  EXPECT_EQ(link.shaper(Way::kThere).next_release(), seconds(13));
  link.shaper(Way::kBack).release();
  EXPECT_EQ(link.shaper(Way::kBack).next_release(), milliseconds(2'500));
  EXPECT_FALSE(link.take_cut(seconds(1'000)));  // Bytes only stood still.
}

TEST(EmulatedLinkTest, ACutIsTakenOnceAndLastsUntilItsEnd) {
  EmulatedLink link = make({.rate_bytes_per_sec = 1'000,
                            .outages = {{.at = seconds(5), .length = seconds(3), .cut = true},
                                        {.at = seconds(20), .length = seconds(1), .cut = true}}});
  EXPECT_EQ(link.next_event(), seconds(5));
  EXPECT_FALSE(link.take_cut(milliseconds(4'999)));
  EXPECT_FALSE(link.cut_at(milliseconds(4'999)));
  EXPECT_TRUE(link.take_cut(milliseconds(5'001)));
  EXPECT_FALSE(link.take_cut(milliseconds(5'002)));
  EXPECT_TRUE(link.cut_at(seconds(5)));
  EXPECT_TRUE(link.cut_at(milliseconds(7'999)));
  EXPECT_FALSE(link.cut_at(seconds(8)));
  EXPECT_EQ(link.next_event(), seconds(20));
}

TEST(EmulatedLinkTest, ACutByBytesBeginsWithThePieceThatReachesThem) {
  EmulatedLink link = make({.rate_bytes_per_sec = 1'000,
                            .rtt = seconds(2),
                            .outages = {{.after_bytes = 1'000, .length = seconds(3), .cut = true}}});
  link.shaper(Way::kBack).push(seconds(0), 999);
  link.advance(seconds(1));
  EXPECT_FALSE(link.take_cut(seconds(1)));
  link.shaper(Way::kBack).push(seconds(1), 2);
  link.advance(seconds(2));
  EXPECT_TRUE(link.take_cut(seconds(2)));
  EXPECT_TRUE(link.cut_at(milliseconds(4'001)));
  EXPECT_FALSE(link.cut_at(milliseconds(4'002)));  // 1.002 s + 3 s.
  link.clear();
  EXPECT_FALSE(link.next_event());
  // Once.
  link.shaper(Way::kBack).push(seconds(5), 5'000);
  link.advance(seconds(100));
  EXPECT_FALSE(link.take_cut(seconds(100)));
}

TEST(EmulatedLinkTest, RefusesNumbersThatMeanNothing) {
  struct Case {
    EmulateConfig config;
    std::vector<RateStep> trace;
    const char* text;
  };
  const std::vector<Case> cases = {
      {{.rtt = seconds(-1)}, {}, "rtt"},
      {{.jitter = seconds(-1)}, {}, "jitter"},
      {{.rtt = Duration::max()}, {}, "rtt"},
      {{.queue_bytes = 0}, {}, "queue"},
      {{.outages = {OutageConfig{.at = seconds(1)}}}, {}, "longer"},
      {{.outages = {OutageConfig{.at = seconds(1), .after_bytes = 1, .length = seconds(1)}}}, {}, "not both"},
      {{}, {{seconds(1), 1}, {seconds(1), 2}}, "increase"},
      {{}, {{seconds(-1), 1}}, "trace"},
      {{}, {{seconds(1), 0}}, "held"},
  };
  for (const Case& c : cases) {
    const auto link = EmulatedLink::create(c.config, c.trace, 1);
    ASSERT_FALSE(link.ok()) << c.text;
    EXPECT_EQ(link.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(link.status().message().find(c.text), std::string::npos) << link.status().to_string();
  }
}

}  // namespace
}  // namespace isthmus::wan
