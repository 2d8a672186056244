#include "wan/shaper.h"

#include <gtest/gtest.h>

#include <vector>

namespace isthmus::wan {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::uint64_t kTenMbps = 1'250'000;

struct Push {
  Duration at;
  std::uint64_t bytes;
};
struct Passed {
  Duration departed, released;
  bool operator==(const Passed&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Passed& p) {
  return out << "departed " << p.departed.count() << " ns, released " << p.released.count() << " ns";
}

// Pushes each piece at its time and lets everything due before it happen first.
std::vector<Passed> run(Shaper& shaper, const std::vector<Push>& pushes) {
  std::vector<Passed> passed;
  std::size_t released = 0;
  const auto depart_until = [&](Duration now) {
    while (shaper.next_departure() && *shaper.next_departure() <= now) {
      passed.push_back({*shaper.next_departure(), {}});
      shaper.depart();
    }
  };
  for (const Push& push : pushes) {
    depart_until(push.at);
    shaper.push(push.at, push.bytes);
  }
  depart_until(Duration::max());
  for (; shaper.next_release(); shaper.release()) passed[released++].released = *shaper.next_release();
  EXPECT_EQ(released, passed.size());
  return passed;
}

std::vector<Passed> run(const ShaperOptions& options, const std::vector<Push>& pushes) {
  Shaper shaper(options);
  return run(shaper, pushes);
}

TEST(ShaperTest, PassesBytesAtTheRateAfterTheDelay) {
  const ShaperOptions options{.rates = {{seconds(0), kTenMbps}}, .delay = milliseconds(40)};
  // 12,500 bytes at 1,250,000 a second are 10 ms.
  EXPECT_EQ(run(options, {{seconds(1), 12'500}}),
            (std::vector<Passed>{{milliseconds(1010), milliseconds(1050)}}));
}

TEST(ShaperTest, QueuesWhatArrivesTogetherAndRestsWhenIdle) {
  const ShaperOptions options{.rates = {{seconds(0), kTenMbps}}, .delay = milliseconds(40)};
  EXPECT_EQ(run(options, {{milliseconds(0), 12'500},
                          {milliseconds(0), 25'000},     // Waits for the first.
                          {milliseconds(25), 1'250},     // Waits 5 ms.
                          {milliseconds(100), 1'250}}),  // Finds the link idle since 31 ms.
            (std::vector<Passed>{{milliseconds(10), milliseconds(50)},
                                 {milliseconds(30), milliseconds(70)},
                                 {milliseconds(31), milliseconds(71)},
                                 {milliseconds(101), milliseconds(141)}}));
}

TEST(ShaperTest, DoesNotDriftOverManySmallPieces) {
  // 7 bytes at 3 a second end between nanoseconds; 3,000 of them take 7,000 s and not a nanosecond more.
  const std::vector<Push> pushes(3'000, {seconds(0), 7});
  const auto passed = run({.rates = {{seconds(0), 3}}}, pushes);
  EXPECT_EQ(passed.front().departed, nanoseconds(2'333'333'334));
  EXPECT_EQ(passed.back().departed, seconds(7'000));
}

TEST(ShaperTest, WithoutARateOnlyDelays) {
  EXPECT_EQ(run({.delay = milliseconds(7)}, {{seconds(1), 1 << 30}, {seconds(1), 1}}),
            (std::vector<Passed>{{seconds(1), milliseconds(1007)}, {seconds(1), milliseconds(1007)}}));
}

TEST(ShaperTest, FollowsARateThatChangesUnderAPiece) {
  // 1 s at 1,000 a second, 1 s of nothing, then 4,000 a second: 2,000 bytes need 1 + 1 + 0.25 s.
  const ShaperOptions options{.rates = {{seconds(0), 1'000}, {seconds(1), 0}, {seconds(2), 4'000}}};
  EXPECT_EQ(run(options, {{seconds(0), 2'000}, {seconds(0), 3'000}}),
            (std::vector<Passed>{{milliseconds(2250), milliseconds(2250)}, {seconds(3), seconds(3)}}));
  // And of a piece that only waits when it changes.
  EXPECT_EQ(run(options, {{seconds(0), 1'000}, {seconds(0), 4'000}})[1].departed, seconds(3));
}

TEST(ShaperTest, BlocksDuringAnOutageWhatHasNotPassed) {
  Shaper shaper({.rates = {{seconds(0), 1'000}}, .delay = milliseconds(100)});
  shaper.block(seconds(2), seconds(5));
  EXPECT_EQ(run(shaper, {{seconds(0), 2'000},  // Passes just in time, and arrives although the link is out.
                         {seconds(0), 500},    // Waits for its end.
                         {seconds(10), 1'000}}),  // Knows nothing of it.
            (std::vector<Passed>{{seconds(2), milliseconds(2100)},
                                 {milliseconds(5500), milliseconds(5600)},
                                 {seconds(11), milliseconds(11'100)}}));
}

TEST(ShaperTest, AnOutageMayBeginUnderAPieceThatIsUnderWay) {
  Shaper shaper({.rates = {{seconds(0), 1'000}}});
  shaper.push(seconds(0), 1'000);
  EXPECT_EQ(shaper.next_departure(), seconds(1));
  shaper.block(milliseconds(400), milliseconds(700));
  EXPECT_EQ(shaper.next_departure(), milliseconds(1300));
  shaper.block(milliseconds(600), milliseconds(900));  // Overlapping ones join.
  EXPECT_EQ(shaper.next_departure(), milliseconds(1500));
}

TEST(ShaperTest, AnOutageStopsALinkWithoutARateToo) {
  Shaper shaper({});
  shaper.block(seconds(1), seconds(2));
  EXPECT_EQ(run(shaper, {{milliseconds(1500), 10}, {milliseconds(1600), 0}}),
            (std::vector<Passed>{{seconds(2), seconds(2)}, {seconds(2), seconds(2)}}));
}

TEST(ShaperTest, AnEmptyPieceKeepsItsPlace) {
  const ShaperOptions options{.rates = {{seconds(0), 1'000}}};
  EXPECT_EQ(
      run(options, {{seconds(0), 1'000}, {seconds(0), 0}, {seconds(0), 1'000}}),
      (std::vector<Passed>{{seconds(1), seconds(1)}, {seconds(1), seconds(1)}, {seconds(2), seconds(2)}}));
}

TEST(ShaperTest, JitterStaysInItsBoundsAndKeepsTheOrder) {
  const ShaperOptions options{
      .rates = {{seconds(0), 1'000'000}}, .delay = milliseconds(40), .jitter = milliseconds(5), .seed = 7};
  const std::vector<Push> pushes(1'000, {seconds(0), 1'000});  // One a millisecond.
  const auto passed = run(options, pushes);
  Duration least = seconds(1), most{0};
  for (std::size_t i = 0; i < passed.size(); ++i) {
    EXPECT_EQ(passed[i].departed, milliseconds(i + 1));  // The rate knows no jitter.
    const Duration extra = passed[i].released - passed[i].departed - milliseconds(40);
    least = std::min(least, extra);
    most = std::max(most, extra);
    if (i > 0) {
      EXPECT_GE(passed[i].released, passed[i - 1].released);
    }
  }
  EXPECT_GE(least, Duration{0});
  EXPECT_LE(most, milliseconds(5));
  EXPECT_GT(most, microseconds(4900));

  EXPECT_EQ(run(options, pushes), passed);  // The same seed, the same times.
  ShaperOptions other = options;
  other.stream = 1;  // The way back has its own.
  EXPECT_NE(run(other, pushes), passed);
}

TEST(ShaperTest, JitterIsUniform) {
  // Far apart, so that order does not bend it: the mean of 4,000 draws is within 5 sigma of the middle.
  std::vector<Push> pushes;
  for (int i = 0; i < 4'000; ++i) pushes.push_back({seconds(i), 1});
  Duration sum{0};
  for (const Passed& piece : run({.jitter = milliseconds(100)}, pushes))
    sum += piece.released - piece.departed;
  EXPECT_NEAR(std::chrono::duration<double>(sum).count() / 4'000, 0.050, 5 * 0.1 / std::sqrt(12.0 * 4'000));
}

TEST(ShaperTest, CountsWhatIsWhere) {
  Shaper shaper({.rates = {{seconds(0), 1'000}}, .delay = seconds(1)});
  shaper.push(seconds(0), 100);
  shaper.push(seconds(0), 50);
  EXPECT_EQ(shaper.queued_bytes(), 150u);
  shaper.depart();
  EXPECT_EQ(shaper.queued_bytes(), 50u);
  EXPECT_EQ(shaper.line_bytes(), 100u);
  EXPECT_EQ(shaper.passed_bytes(), 100u);
  shaper.release();
  EXPECT_EQ(shaper.line_bytes(), 0u);
  shaper.clear();
  EXPECT_EQ(shaper.queued_bytes(), 0u);
  EXPECT_FALSE(shaper.next_departure());
  EXPECT_EQ(shaper.passed_bytes(), 100u);
}

TEST(ShaperTest, HasRoomUntilTheQueueIsFull) {
  struct Case {
    std::uint64_t rate, queue_bytes, queued, room;
  };
  for (const Case& c : std::vector<Case>{
           {1'000, 1 << 20, 0, 4'096},                     // Slow: small pieces.
           {kTenMbps, 1 << 20, 0, kTenMbps / 256},         // 1/256 s of the rate.
           {kUnlimitedRate, 1 << 20, 0, 65'536},           // Fast: large ones.
           {kUnlimitedRate, 100'000, 30'000, 65'536},      // They just fit.
           {kUnlimitedRate, 100'000, 40'000, 60'000},      // A smaller one fits.
           {kUnlimitedRate, 100'000, 60'000, 0},           // What would fit is not worth it.
           {kTenMbps, 1 << 20, (1 << 20) - 4'882, 4'882},  // The last one.
           {kTenMbps, 1 << 20, (1 << 20) - 4'881, 0},      //
           {kTenMbps, 100, 0, 100},                        // A tiny queue still works.
           {kTenMbps, 100, 51, 0},                         //
           {kTenMbps, 0, 0, 1},                            // As does none.
       }) {
    Shaper shaper({.rates = {{seconds(0), c.rate}}, .queue_bytes = c.queue_bytes});
    if (c.queued > 0) {
      shaper.block(seconds(0), seconds(1));
      shaper.push(seconds(0), c.queued);
    }
    EXPECT_EQ(shaper.room(seconds(0)), c.room) << c.rate << " " << c.queue_bytes << " " << c.queued;
  }
}

TEST(ShaperTest, TheLineOfALinkWithoutARateIsBounded) {
  Shaper shaper({.delay = seconds(1)});
  std::uint64_t pushed = 0;
  for (; shaper.room(seconds(0)) > 0 && pushed < (1 << 30); shaper.depart()) {
    const std::uint64_t bytes = shaper.room(seconds(0));
    shaper.push(seconds(0), bytes);
    pushed += bytes;
  }
  EXPECT_EQ(pushed, 64u << 20);
  shaper.release();
  EXPECT_GT(shaper.room(seconds(1)), 0u);
}

}  // namespace
}  // namespace isthmus::wan
