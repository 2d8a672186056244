#include "server/outer_home.h"

#include <array>
#include <cmath>
#include <map>

#include "tests/server/outer_support.h"

namespace isthmus::server {
namespace {

using core::CodecKind;
using core::RegionWeight;
using Received = OuterHome::Received;
using Outgoing = OuterHome::Outgoing;

constexpr std::size_t kElements = 4;
constexpr std::uint64_t kEpoch = 1;

std::vector<float> all(float value) { return std::vector<float>(kElements, value); }

Contribution told(std::uint64_t incarnation, std::uint64_t seq, float value, std::uint64_t samples = 1) {
  Contribution c;
  c.id = {incarnation, seq};
  c.base = {kEpoch, 0};
  c.samples = samples;
  c.codec = kFp32;
  c.record = bytes_of(all(value));
  return c;
}

// A home that is region 0 of `regions`, all joined with incarnation 1 and at round 0.
class Job {
 public:
  explicit Job(std::uint32_t regions, RegionWeight weight = RegionWeight::kSamples,
               CodecKind kind = CodecKind::kFp32, float initial = 0)
      : codec_(codec_of(kind)), home_(kElements, regions, 0, kEpoch, *codec_, weight) {
    home_.initialize(all(initial));
    for (std::uint32_t r = 0; r < regions; ++r) {
      EXPECT_TRUE(home_.join(r, 1));
      ack(r, 0);
    }
  }
  OuterHome& operator*() { return home_; }
  OuterHome* operator->() { return &home_; }

  std::optional<Outgoing> ack(std::uint32_t region, std::uint64_t round, std::uint64_t incarnation = 1) {
    return home_.acknowledge(region, {.id = {kEpoch, round}, .incarnation = incarnation});
  }
  void accept(std::uint32_t region, const Contribution& c) {
    auto received = home_.receive(region, c);
    ASSERT_TRUE(received.ok()) << received.status().to_string();
    EXPECT_EQ(*received, Received::kAccepted);
  }
  std::map<std::uint32_t, Outgoing> close(std::vector<int> living = {1, 1, 1, 1}) {
    std::array<bool, 4> flags{};
    std::copy(living.begin(), living.end(), flags.begin());
    std::map<std::uint32_t, Outgoing> out;
    for (Outgoing& o : home_.close(std::span(flags).first(living.size()))) out.emplace(o.region, o);
    return out;
  }
  std::vector<float> global() const { return floats_of(home_.global(), kElements); }

 private:
  std::unique_ptr<const compression::Codec> codec_;
  OuterHome home_;
};

std::vector<float> value_of(const GlobalDelta& delta) {
  return decoded(delta.codec, delta.record, kElements);
}

// ---- joining

TEST(OuterHomeTest, RegionsWaitForTheInitialValues) {
  const auto codec = codec_of(CodecKind::kFp32);
  OuterHome home(kElements, 3, 0, kEpoch, *codec, RegionWeight::kSamples);
  EXPECT_FALSE(home.join(1, 5));
  EXPECT_FALSE(home.initialized());
  EXPECT_EQ(*home.receive(1, told(5, 1, 1)), Received::kRefused);
  const auto out = home.initialize(all(3));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].region, 1u);
  EXPECT_EQ(reset_of(out[0]).id, (AnchorId{kEpoch, 0}));
  EXPECT_EQ(reset_of(out[0]).folded, (ContributionId{5, 0}));
  EXPECT_EQ(decoded(kFp32, reset_of(out[0]).values, kElements), all(3));
  EXPECT_TRUE(home.join(1, 5));  // The same again: not acknowledged yet.
  EXPECT_TRUE(home.join(2, 1));
  EXPECT_FALSE(home.join(3, 1));  // No such region.
}

TEST(OuterHomeTest, JoiningAgainRepeatsTheSameBytesAndANewLifeGetsAReset) {
  Job job(2);
  EXPECT_FALSE(job->join(1, 1));  // Nothing unacknowledged.
  job.accept(0, told(1, 1, 4));
  const GlobalDelta first = delta_of(job.close().at(1));
  const auto again = job->join(1, 1);
  ASSERT_TRUE(again);
  EXPECT_EQ(delta_of(*again).record.view.data(), first.record.view.data());

  const auto reset = job->join(1, 2);
  ASSERT_TRUE(reset);
  EXPECT_EQ(reset_of(*reset).id, (AnchorId{kEpoch, 1}));
  EXPECT_EQ(reset_of(*reset).folded, (ContributionId{2, 0}));
  EXPECT_EQ(decoded(kFp32, reset_of(*reset).values, kElements), job.global());
  EXPECT_FALSE(job->join(1, 1));   // The earlier life, late.
  EXPECT_FALSE(job.ack(1, 1, 1));  // Its acknowledgement too: the Reset stays unacknowledged.
  EXPECT_TRUE(job->repeat(1));
  job.ack(1, 1, 2);
  EXPECT_FALSE(job->repeat(1));
}

// ---- receiving (rules 1 and 2)

TEST(OuterHomeTest, OnlyTheNextOfTheCurrentLifeIsAccepted) {
  Job job(2);
  job->join(1, 3);
  struct Case {
    Contribution contribution;
    Received expected;
  };
  Contribution other_epoch = told(3, 2, 1);
  other_epoch.base.epoch = kEpoch + 1;
  const Case cases[] = {
      {told(3, 2, 1), Received::kRefused},  // A gap.
      {told(3, 1, 1), Received::kAccepted},
      {told(3, 1, 1), Received::kDuplicate},  // Still waiting.
      {told(1, 1, 1), Received::kDuplicate},  // An earlier life's.
      {told(2, 9, 1), Received::kDuplicate},
      {told(4, 1, 1), Received::kRefused},  // A life that has not joined.
      {told(4, 2, 1), Received::kRefused},
      {told(3, 3, 1), Received::kRefused},
      {other_epoch, Received::kRefused},
      {told(3, 2, 1), Received::kAccepted},
  };
  for (const Case& c : cases) {
    auto received = job->receive(1, c.contribution);
    ASSERT_TRUE(received.ok());
    EXPECT_EQ(*received, c.expected) << &c - cases;
  }
  EXPECT_EQ(job->duplicate_count(), 3u);
  EXPECT_EQ(job->waiting(), 2u);
  EXPECT_EQ(*job->receive(9, told(1, 1, 1)), Received::kRefused);
  job.close();
  EXPECT_EQ(*job->receive(1, told(3, 2, 1)), Received::kDuplicate);  // Folded.
  EXPECT_EQ(job->folded_count(), 2u);
}

TEST(OuterHomeTest, BadRecordsAreRefusedAndDoNotUseUpTheirNumber) {
  Job job(2);
  Contribution bad = told(1, 1, 1);
  bad.record = bytes_of({1, 2});
  EXPECT_EQ(job->receive(1, bad).status().code(), ErrorCode::kCorruption);
  bad.record = bytes_of({1, 2, 3, std::nanf("")});
  EXPECT_EQ(job->receive(1, bad).status().code(), ErrorCode::kCorruption);
  bad.codec = 99;
  EXPECT_EQ(job->receive(1, bad).status().code(), ErrorCode::kProtocol);
  EXPECT_EQ(job->waiting(), 0u);
  job.accept(1, told(1, 1, 1));
}

// ---- closing a round (rule 3)

TEST(OuterHomeTest, ARoundClosesWhenAllExpectedArrivedOrTheDeadlinePassed) {
  Job job(3);
  const bool everybody[] = {true, true, true}, without_two[] = {true, true, false};
  EXPECT_FALSE(job->may_close(everybody, true));  // Nothing waits.
  job.accept(0, told(1, 1, 1));
  EXPECT_FALSE(job->may_close(everybody, false));
  EXPECT_TRUE(job->may_close(everybody, true));
  job.accept(1, told(1, 1, 1));
  EXPECT_FALSE(job->may_close(everybody, false));
  EXPECT_TRUE(job->may_close(without_two, false));
  job.accept(2, told(1, 1, 1));
  EXPECT_TRUE(job->may_close(everybody, false));
  job.close();
  EXPECT_FALSE(job->may_close(everybody, true));
  EXPECT_TRUE(job->close(everybody).empty());
}

// Federated averaging's example: samples {100, 300}, values {1, 3} -> 2.5.
TEST(OuterHomeTest, TheMeanIsWeightedBySamples) {
  Job job(2);
  job.accept(0, told(1, 1, 1, 100));
  job.accept(1, told(1, 1, 3, 300));
  const auto out = job.close();
  EXPECT_EQ(job.global(), all(2.5f));
  EXPECT_EQ(job->id(), (AnchorId{kEpoch, 1}));
  EXPECT_EQ(value_of(delta_of(out.at(1))), all(2.5f));
  EXPECT_EQ(delta_of(out.at(1)).base, (AnchorId{kEpoch, 0}));
  EXPECT_EQ(delta_of(out.at(1)).id, (AnchorId{kEpoch, 1}));
  EXPECT_EQ(delta_of(out.at(1)).folded, (ContributionId{1, 1}));
}

TEST(OuterHomeTest, OrEqually) {
  Job job(2, RegionWeight::kEqual);
  job.accept(0, told(1, 1, 1, 100));
  job.accept(1, told(1, 1, 3, 300));
  job.close();
  EXPECT_EQ(job.global(), all(2));
}

// Four living regions of weight 1 whose contributions are 12.
TEST(OuterHomeTest, LessThanHalfOfTheLivingIsDividedByTheLiving) {
  struct Case {
    int arrived;
    std::vector<int> living;
    float expected;
  };
  const Case cases[] = {
      {4, {1, 1, 1, 1}, 12}, {3, {1, 1, 1, 1}, 12}, {2, {1, 1, 1, 1}, 12}, {1, {1, 1, 1, 1}, 3},
      {1, {1, 0, 0, 0}, 12}, {1, {1, 1, 1, 0}, 4},  {1, {1, 1, 0, 0}, 12}, {1, {0, 0, 0, 0}, 12},
  };
  for (auto weight : {RegionWeight::kEqual, RegionWeight::kSamples}) {
    for (const Case& c : cases) {
      Job job(4, weight);
      for (int r = 0; r < c.arrived; ++r) job.accept(static_cast<std::uint32_t>(r), told(1, 1, 12, 8));
      job.close(c.living);
      EXPECT_EQ(job.global(), all(c.expected)) << &c - cases;
    }
  }
}

// Region 1's last weight was 3 of 4; now only region 0, of weight 1, arrives: 1 < 4 / 2.
TEST(OuterHomeTest, TheAbsentCountWithTheirLastKnownWeight) {
  Job job(2);
  job.accept(0, told(1, 1, 0, 1));
  job.accept(1, told(1, 1, 0, 3));
  job.close();
  job.accept(0, told(1, 2, 8, 1));
  job.close({1, 1});
  EXPECT_EQ(job.global(), all(2));
  // And 3 >= 4 / 2.
  job.accept(1, told(1, 2, 8, 3));
  job.close({1, 1});
  EXPECT_EQ(job.global(), all(10));
}

// What a codec lost of earlier steps must not be thrown away because no step followed.
TEST(OuterHomeTest, WithoutSamplesTheLastKnownWeightCounts) {
  Job job(2);
  job.accept(0, told(1, 1, 4, 0));
  job.accept(1, told(1, 1, 8, 0));
  job.close();
  EXPECT_EQ(job.global(), all(6));  // Nothing known: equal.
  job.accept(0, told(1, 2, 0, 1));
  job.accept(1, told(1, 2, 0, 3));
  job.close();
  job.accept(0, told(1, 3, 0, 1));
  job.accept(1, told(1, 3, 8, 0));
  job.close();
  EXPECT_EQ(job.global(), all(12));  // 6 + 8 * 3/4
  Contribution final = told(1, 4, 8, 1);
  final.final = true;
  job.accept(0, told(1, 4, 0, 1));
  job.accept(1, final);
  job.close();
  EXPECT_EQ(job.global(), all(18));  // A final one is all that was never told.
}

TEST(OuterHomeTest, TheOrderOfArrivalDoesNotShow) {
  std::vector<float> results[2];
  for (int order = 0; order < 2; ++order) {
    Job job(4);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t r = order ? 3 - i : i;
      job.accept(r, told(1, 1, 0.1f + static_cast<float>(r * r) * 1e-7f, 3 + r));
    }
    job.close();
    results[order] = job.global();
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(OuterHomeTest, ARoundThatOverflowsIsCountedAndLeavesGlobal) {
  Job job(2, RegionWeight::kEqual, CodecKind::kFp32, 3e38f);
  job.accept(1, told(1, 1, 3e38f));
  const auto out = job.close({0, 1});
  EXPECT_EQ(job.global(), all(3e38f));
  EXPECT_EQ(job->overflow_count(), 1u);
  EXPECT_EQ(value_of(delta_of(out.at(1))), all(0));
  EXPECT_EQ(delta_of(out.at(1)).folded.seq, 1u);
}

// ---- telling (rule 4)

TEST(OuterHomeTest, OneMessageUnacknowledgedAndTheNextCoversAllSince) {
  Job job(2);
  job.accept(0, told(1, 1, 4));
  EXPECT_EQ(job.close({1, 0}).count(1), 1u);
  job.ack(0, 1);
  const auto first = job->repeat(1);
  job.accept(0, told(1, 2, 2));
  job.accept(1, told(1, 1, 2));
  EXPECT_EQ(job.close({1, 1}).count(1), 0u);
  // Still the same bytes, and not a word of what was folded since.
  const GlobalDelta again = delta_of(*job->repeat(1));
  EXPECT_EQ(again.record.view.data(), delta_of(*first).record.view.data());
  EXPECT_EQ(again.folded, (ContributionId{1, 0}));
  EXPECT_EQ(again.id, (AnchorId{kEpoch, 1}));

  EXPECT_FALSE(job.ack(1, 0));  // An old acknowledgement, again.
  const auto next = job.ack(1, 1);
  ASSERT_TRUE(next);
  EXPECT_EQ(delta_of(*next).base, (AnchorId{kEpoch, 1}));
  EXPECT_EQ(delta_of(*next).id, (AnchorId{kEpoch, 2}));
  EXPECT_EQ(delta_of(*next).folded, (ContributionId{1, 1}));
  EXPECT_EQ(value_of(delta_of(*next)), all(2));
  EXPECT_FALSE(job.ack(1, 1));  // The duplicate of an acknowledgement.
  EXPECT_TRUE(job->repeat(1));
  EXPECT_FALSE(job.ack(1, 2));
  EXPECT_FALSE(job->repeat(1));
}

TEST(OuterHomeTest, TheOwnRegionIsGivenGlobalItself) {
  Job job(2);
  job.accept(1, told(1, 1, 4));
  const Reset reset = reset_of(job.close({0, 1}).at(0));
  EXPECT_EQ(static_cast<const void*>(reset.values.view.data()),
            static_cast<const void*>(job->global().get()));
  EXPECT_FALSE(reset.final);
  EXPECT_EQ(reset.id, (AnchorId{kEpoch, 1}));
}

TEST(OuterHomeTest, WhatTheCodecLosesIsToldLater) {
  Job job(2, RegionWeight::kSamples, CodecKind::kTopk);  // Keeps one of the four.
  Contribution c = told(1, 1, 0);
  c.record = bytes_of({8, 1, 2, 3});
  job.accept(1, c);
  EXPECT_EQ(value_of(delta_of(job.close({0, 1}).at(1))), (std::vector<float>{8, 0, 0, 0}));
  job.ack(1, 1);
  job.accept(1, told(1, 2, 0));
  EXPECT_EQ(value_of(delta_of(job.close({0, 1}).at(1))), (std::vector<float>{0, 0, 0, 3}));
}

TEST(OuterHomeTest, RegionsAtOneAnchorShareOneEncoding) {
  Job job(4, RegionWeight::kSamples, CodecKind::kTopk);
  for (std::uint64_t round = 1; round <= 2; ++round) {
    job.accept(0, told(1, round, 4));
    const auto out = job.close({1, 0, 0, 0});
    EXPECT_EQ(delta_of(out.at(1)).record.view.data(), delta_of(out.at(2)).record.view.data());
    EXPECT_EQ(out.count(3), round == 1 ? 1u : 0u);
    if (round == 1) {
      EXPECT_EQ(delta_of(out.at(3)).record.view.data(), delta_of(out.at(2)).record.view.data());
    }
    for (std::uint32_t r = 0; r < 3; ++r) job.ack(r, round);  // Region 3 stays behind.
  }
  const auto late = job.ack(3, 1);
  ASSERT_TRUE(late);
  EXPECT_EQ(delta_of(*late).base, (AnchorId{kEpoch, 1}));
}

TEST(OuterHomeTest, EverySixteenthDeltaCarriesTheChecksumOfTheView) {
  Job job(2, RegionWeight::kSamples, CodecKind::kTopk);
  std::vector<float> view = all(0);
  for (std::uint64_t round = 1; round <= 32; ++round) {
    Contribution c = told(1, round, 0);
    c.record = bytes_of({1, 2, static_cast<float>(round), 4});
    job.accept(1, c);
    const GlobalDelta delta = delta_of(job.close({0, 1}).at(1));
    const std::vector<float> moved = value_of(delta);
    for (std::size_t i = 0; i < kElements; ++i) view[i] += moved[i];
    ASSERT_EQ(delta.checksum.has_value(), round % 16 == 0);
    EXPECT_EQ(delta.checksum.value_or(anchor_checksum(view)), anchor_checksum(view));
    job.ack(0, round);
    job.ack(1, round);
  }
}

// A region that stayed at -2e38 while global went to 2e38.
TEST(OuterHomeTest, ADifferenceThatOverflowsIsToldAsAReset) {
  Job job(2, RegionWeight::kSamples, CodecKind::kFp32, -2e38f);
  job->join(1, 2);
  for (std::uint64_t round = 1; round <= 2; ++round) {
    job.accept(0, told(1, round, 2e38f));
    job.close({1, 0});
    job.ack(0, round);
  }
  const auto next = job.ack(1, 0, 2);
  ASSERT_TRUE(next);
  EXPECT_EQ(decoded(kFp32, reset_of(*next).values, kElements), all(2e38f));
  EXPECT_EQ(reset_of(*next).id, (AnchorId{kEpoch, 2}));
}

// ---- resets (rules 5 and 6)

TEST(OuterHomeTest, AResetHasANameOfItsOwn) {
  Job job(2);
  job.accept(1, told(1, 1, 4));
  job.close({0, 1});
  const auto reset = job->reset(1);  // While the delta to round 1 is under way.
  ASSERT_TRUE(reset);
  EXPECT_EQ(reset_of(*reset).id, (AnchorId{kEpoch, 2}));
  EXPECT_EQ(reset_of(*reset).folded, (ContributionId{1, 1}));
  EXPECT_EQ(decoded(kFp32, reset_of(*reset).values, kElements), all(4));
  job.ack(1, 1);  // For the delta: does not acknowledge the Reset.
  EXPECT_TRUE(job->repeat(1));
  const auto again = job->reset(1);
  EXPECT_EQ(reset_of(*again).id, (AnchorId{kEpoch, 2}));  // The same one.
  EXPECT_FALSE(job.ack(1, 2));
  EXPECT_FALSE(job->repeat(1));
  job.accept(1, told(1, 2, 1));
  EXPECT_EQ(delta_of(job.close({0, 1}).at(1)).base, (AnchorId{kEpoch, 2}));
  EXPECT_FALSE(job->reset(9));
}

// Rule 2: what was received stays received, even when its sender's next life takes part beside it.
TEST(OuterHomeTest, ARestartThrowsNothingAwayThatWasReceived) {
  Job job(2, RegionWeight::kEqual);
  job.accept(1, told(1, 1, 4));
  const auto reset = job->join(1, 2);
  EXPECT_EQ(decoded(kFp32, reset_of(*reset).values, kElements), all(0));
  job.ack(1, 0, 2);
  job.accept(1, told(2, 1, 8));
  const auto out = job.close({0, 1});
  EXPECT_EQ(job.global(), all(6));
  EXPECT_EQ(delta_of(out.at(1)).folded, (ContributionId{2, 1}));
}

TEST(OuterHomeTest, AnEarlierLifesContributionIsNotReportedAsTheNewOnes) {
  Job job(2);
  job.accept(1, told(1, 1, 4));
  job->join(1, 2);
  job.ack(1, 0, 2);
  const auto out = job.close({0, 1});
  EXPECT_EQ(job.global(), all(4));
  EXPECT_EQ(delta_of(out.at(1)).folded, (ContributionId{2, 0}));
}

// ---- the end

TEST(OuterHomeTest, TheEnd) {
  Job job(3);
  const bool everybody[] = {true, true, true}, without_two[] = {true, true, false};
  Contribution final = told(1, 1, 3);
  final.final = true;
  job.accept(0, final);
  job.accept(1, final);
  EXPECT_FALSE(job->all_final(without_two));  // Received is not folded.
  job.close({1, 1, 0});
  EXPECT_TRUE(job->all_final(without_two));
  EXPECT_FALSE(job->all_final(everybody));
  job.accept(2, told(1, 1, 5));  // Late, but before the end.
  const auto out = job->finish();
  EXPECT_TRUE(job->finished());
  EXPECT_EQ(job.global(), all(8));
  ASSERT_EQ(out.size(), 3u);
  for (const Outgoing& o : out) {
    EXPECT_TRUE(reset_of(o).final);
    EXPECT_EQ(decoded(kFp32, reset_of(o).values, kElements), all(8));
    EXPECT_EQ(reset_of(o).id, job->id());
  }
  job.ack(1, 1);  // For the last delta: not for the end.
  EXPECT_FALSE(job->final_acknowledged(1));
  job.ack(1, job->id().round);
  EXPECT_TRUE(job->final_acknowledged(1));

  EXPECT_EQ(*job->receive(1, told(1, 2, 9)), Received::kDuplicate);
  EXPECT_TRUE(job->finish().empty());
  EXPECT_TRUE(job.close().empty());
  const auto late = job->join(2, 2);  // Restarted since: gets the end, too.
  ASSERT_TRUE(late);
  EXPECT_TRUE(reset_of(*late).final);
  EXPECT_FALSE(job->final_acknowledged(2));
  EXPECT_EQ(job.global(), all(8));
}

// It goes back to a checkpoint, but what it had told is in the job's parameters: nothing of it is lost.
TEST(OuterHomeTest, ALifeThatBeginsAfterTheEndIsNotAskedForMore) {
  Job job(2);
  const bool one[] = {false, true}, self[] = {true, false};
  Contribution final = told(1, 1, 3);
  final.final = true;
  job.accept(0, final);
  job.accept(1, final);
  job.close({1, 1});
  job->finish();
  const auto end = job->join(1, 2);
  ASSERT_TRUE(end);
  EXPECT_TRUE(reset_of(*end).final);
  EXPECT_TRUE(reset_of(*end).all_told);
  EXPECT_TRUE(job->all_final(one));

  Job without(2);
  without.accept(0, final);
  without.close({1, 0});
  ASSERT_TRUE(without->all_final(self));
  without->finish();
  EXPECT_FALSE(reset_of(*without->join(1, 2)).all_told) << "what it had to tell is not in it";
}

TEST(OuterHomeTest, ANewLifeHasToEndItself) {
  Job job(2);
  const bool one[] = {false, true};
  Contribution final = told(1, 1, 3);
  final.final = true;
  job.accept(1, final);
  job->join(1, 2);
  job.close({0, 1});
  EXPECT_FALSE(job->all_final(one));
}

}  // namespace
}  // namespace isthmus::server
