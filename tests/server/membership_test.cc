#include "server/membership.h"

#include <gtest/gtest.h>

#include "server/commit_policy.h"

namespace isthmus::server {
namespace {

using std::chrono::seconds;

core::TimePoint at(int second) { return core::TimePoint(seconds(second)); }

// Leases of 10 s; the expected workers are waited for at most 30 s.
Membership membership(std::uint32_t expected) { return {expected, seconds(10), seconds(30)}; }

// Worker `i` is reached as "p<i>".
std::string peer(std::uint32_t worker) { return "p" + std::to_string(worker); }

void finish(Membership& members, std::uint32_t worker, Step finished, int second = 0) {
  Member* member = members.renew(peer(worker), at(second));
  ASSERT_NE(member, nullptr);
  members.finish_step(*member, finished, at(second));
}

Membership with_workers(std::uint32_t count) {
  Membership members = membership(count);
  for (std::uint32_t worker = 0; worker < count; ++worker) members.join(worker, 1, peer(worker), at(0));
  return members;
}

TEST(MembershipTest, KnowsWhoIsLastAndHowFastEverybodyIs) {
  Membership members = with_workers(3);
  finish(members, 0, 1, 1);
  finish(members, 0, 3, 9);
  finish(members, 0, 3, 10);  // Said again.
  const Member& fast = members.members().at(0);
  EXPECT_EQ(fast.pace.last, at(9));
  EXPECT_EQ(fast.pace.step_time, seconds(4));
  EXPECT_TRUE(members.leads(fast));
  EXPECT_FALSE(members.leads(members.members().at(1)));
  finish(members, 1, 1, 2), finish(members, 1, 2, 4);
  finish(members, 2, 1, 2), finish(members, 2, 2, 5);
  EXPECT_EQ(members.last(), &members.members().at(2)) << "of two that have finished as much, the slower";
  members.leave(*members.renew(peer(2), at(5)), false);
  EXPECT_EQ(members.last(), &members.members().at(1));
  members.leave(*members.renew(peer(0), at(5)), false);
  EXPECT_TRUE(members.leads(members.members().at(1)));
}

TEST(MembershipTest, ABarrierCountsTheExpectedUntilTheyHaveCome) {
  Membership members = membership(3);
  EXPECT_EQ(members.barrier_size(), 3u);
  members.join(0, 1, peer(0), at(0));
  members.join(1, 1, peer(1), at(1));
  EXPECT_FALSE(members.started());
  EXPECT_EQ(members.barrier_size(), 3u);
  members.join(2, 1, peer(2), at(2));
  EXPECT_TRUE(members.started());
  EXPECT_EQ(members.barrier_size(), 3u);
}

TEST(MembershipTest, NobodyRunsAheadOfThoseStillToCome) {
  Membership members = membership(2);
  members.join(0, 1, peer(0), at(0));
  finish(members, 0, 5);
  EXPECT_EQ(members.slowest(), 0u);
  EXPECT_EQ(members.join(1, 1, peer(1), at(1))->finished, 0u);
}

TEST(MembershipTest, TheExpectedAreWaitedForNoLongerThanTheGrace) {
  Membership members = membership(3);
  EXPECT_EQ(members.next_expiry(), std::nullopt);
  members.join(0, 1, peer(0), at(100));
  for (int second = 105; second < 130; second += 5) {
    finish(members, 0, 1, second);
    EXPECT_TRUE(members.expire(at(second)).empty());
    EXPECT_FALSE(members.started());
  }
  EXPECT_EQ(members.next_expiry(), at(130));
  members.expire(at(130));
  EXPECT_TRUE(members.started());
  EXPECT_EQ(members.barrier_size(), 1u);
  EXPECT_EQ(members.slowest(), 1u);
}

TEST(MembershipTest, AWorkerJoinsAtTheSlowestLivingWorkersStep) {
  Membership members = with_workers(2);
  finish(members, 0, 7);
  finish(members, 1, 5);
  const Member* late = members.join(2, 1, peer(2), at(1));
  EXPECT_EQ(late->finished, 5u);
  EXPECT_EQ(members.slowest(), 5u);
  EXPECT_EQ(members.barrier_size(), 3u);
}

TEST(MembershipTest, AnEndedLeaseShrinksBarrierAndClockAtOnce) {
  Membership members = with_workers(3);
  finish(members, 0, 4, 6);
  finish(members, 1, 6, 8);  // Worker 2 has been silent since 0, at step 0.
  EXPECT_EQ(members.slowest(), 0u);
  EXPECT_EQ(members.next_expiry(), at(10));
  EXPECT_TRUE(members.expire(at(10) - core::Duration(1)).empty());
  EXPECT_EQ(members.expire(at(10)), std::vector<std::uint32_t>{2});
  EXPECT_EQ(members.barrier_size(), 2u);
  EXPECT_EQ(members.slowest(), 4u);
  EXPECT_EQ(members.renew(peer(2), at(10)), nullptr) << "it must say hello again";
  EXPECT_EQ(members.next_expiry(), at(16));
}

TEST(MembershipTest, EveryMessageRenewsTheLease) {
  Membership members = with_workers(1);
  for (int second = 9; second < 100; second += 9) {
    EXPECT_NE(members.renew(peer(0), at(second)), nullptr);
    EXPECT_TRUE(members.expire(at(second + 9)).empty());
  }
}

TEST(MembershipTest, WithNobodyLeftTheClockStaysWhereItWas) {
  Membership members = with_workers(2);
  finish(members, 0, 9);
  finish(members, 1, 8);
  EXPECT_EQ(members.expire(at(10)).size(), 2u);
  EXPECT_EQ(members.living(), 0u);
  EXPECT_EQ(members.barrier_size(), 0u);
  EXPECT_EQ(members.slowest(), 8u);
  EXPECT_EQ(members.join(0, 2, peer(0), at(11))->finished, 8u);
}

TEST(MembershipTest, ALaterLifeReplacesAnEarlierOne) {
  Membership members = with_workers(2);
  finish(members, 0, 6);
  finish(members, 1, 4);
  const Member* again = members.join(0, 2, "elsewhere", at(1));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->finished, 4u);
  EXPECT_EQ(members.living(), 2u);
  EXPECT_EQ(members.renew(peer(0), at(1)), nullptr) << "the earlier life has no lease any more";
  EXPECT_NE(members.renew("elsewhere", at(1)), nullptr);
}

TEST(MembershipTest, AnEarlierLifeIsRefusedAndChangesNothing) {
  Membership members = membership(1);
  members.join(0, 5, peer(0), at(0));
  finish(members, 0, 3);
  EXPECT_EQ(members.join(0, 4, "old", at(1)), nullptr);
  EXPECT_EQ(members.renew("old", at(1)), nullptr);
  ASSERT_NE(members.renew(peer(0), at(1)), nullptr);
  EXPECT_EQ(members.renew(peer(0), at(1))->finished, 3u);
}

TEST(MembershipTest, AClockThatWasSetBackLocksNoWorkerOut) {
  Membership members = membership(1);
  members.join(0, 5, peer(0), at(0));
  finish(members, 0, 3, 1);
  EXPECT_EQ(members.join(0, 4, "restarted", at(2)), nullptr) << "nobody can tell that the other has died";
  EXPECT_EQ(members.expire(at(11)), (std::vector<std::uint32_t>{0}));
  const Member* restarted = members.join(0, 4, "restarted", at(11));
  ASSERT_NE(restarted, nullptr);
  EXPECT_EQ(restarted->finished, 3u);
  EXPECT_EQ(members.renew(peer(0), at(12)), nullptr);
  EXPECT_NE(members.renew("restarted", at(12)), nullptr);
}

TEST(MembershipTest, ARepeatedHelloDoesNotSetAWorkerBack) {
  Membership members = with_workers(2);
  finish(members, 0, 6);
  EXPECT_EQ(members.join(0, 1, peer(0), at(1))->finished, 6u);
  EXPECT_EQ(members.join(0, 1, "another connection", at(2))->finished, 6u);
  EXPECT_EQ(members.renew(peer(0), at(2)), nullptr);
}

TEST(MembershipTest, APeerThatBecomesAnotherWorkerIsNoLongerTheFirst) {
  Membership members = with_workers(2);
  members.join(5, 1, peer(0), at(1));
  EXPECT_FALSE(members.members().at(0).living);
  // The first worker comes back from elsewhere, and takes nothing from the other.
  members.join(0, 2, "elsewhere", at(2));
  ASSERT_NE(members.renew(peer(0), at(3)), nullptr);
  EXPECT_EQ(members.renew(peer(0), at(3))->worker, 5u);
  EXPECT_EQ(members.renew("elsewhere", at(3))->worker, 0u);
}

TEST(MembershipTest, StepsOnlyGrow) {
  Membership members = with_workers(1);
  finish(members, 0, 4);
  finish(members, 0, 2);
  EXPECT_EQ(members.slowest(), 4u);
}

TEST(MembershipTest, TheJobIsDoneWhenAllHaveLeftAndOneWasDone) {
  Membership members = with_workers(3);
  EXPECT_FALSE(members.all_done());
  members.leave(*members.renew(peer(0), at(1)), true);
  EXPECT_FALSE(members.all_done());
  members.leave(*members.renew(peer(1), at(1)), false);
  EXPECT_FALSE(members.all_done());
  members.expire(at(10));  // The third has crashed.
  EXPECT_TRUE(members.all_done());
  EXPECT_TRUE(members.members().at(0).done);
}

TEST(MembershipTest, WhoMerelyWentAwayHasNotDoneTheJob) {
  Membership members = with_workers(1);
  members.leave(*members.renew(peer(0), at(1)), false);
  EXPECT_EQ(members.living(), 0u);
  EXPECT_FALSE(members.all_done());
}

TEST(MembershipTest, OneThatIsDoneEarlyDoesNotEndTheJobOfThoseStillToCome) {
  Membership members = membership(2);
  members.join(0, 1, peer(0), at(0));
  members.leave(*members.renew(peer(0), at(1)), true);
  EXPECT_FALSE(members.all_done());
  members.expire(at(30));
  EXPECT_TRUE(members.all_done());
}

// Ho et al.'s rule with s = 2 on the clocks as leases and steps make them: {3,0} blocks the first worker,
// {3,1} and {2,0} let it go, and so does the death of the slow one.
TEST(MembershipTest, SspBoundsTheDistanceToTheSlowestLivingWorker) {
  const auto ssp = make_commit_policy({.policy = core::CommitPolicyKind::kSsp, .staleness = 2});
  Membership members = with_workers(2);
  finish(members, 0, 2, 5);
  EXPECT_TRUE(ssp->may_proceed(2, members.slowest()));
  finish(members, 0, 3, 5);
  EXPECT_FALSE(ssp->may_proceed(3, members.slowest()));
  finish(members, 1, 1, 0);
  EXPECT_TRUE(ssp->may_proceed(3, members.slowest()));
  finish(members, 0, 4, 6);
  EXPECT_FALSE(ssp->may_proceed(4, members.slowest()));
  members.expire(at(10));
  EXPECT_TRUE(ssp->may_proceed(4, members.slowest()));
}

// ---- After a restart of the server.

TEST(MembershipTest, ARestartKeepsClocksAndWhoWasDone) {
  Membership members = with_workers(2);
  finish(members, 0, 5);
  finish(members, 1, 3);
  members.leave(*members.renew(peer(1), at(1)), true);
  EXPECT_EQ(members.save(), (std::vector<SavedMember>{{0, 1, false}, {1, 1, true}}));
}

TEST(MembershipTest, AfterARestartTheOthersAreWaitedForAndBeginWhereTheyWere) {
  Membership members = membership(2);
  members.restore(40, {{0, 7, false}, {1, 8, false}}, at(100), false);
  EXPECT_EQ(members.slowest(), 40u);
  EXPECT_EQ(members.join(0, 6, peer(0), at(101)), nullptr);  // An earlier life.
  EXPECT_EQ(members.join(0, 7, peer(0), at(101))->finished, 40u);
  EXPECT_FALSE(members.started());
  members.join(1, 9, peer(1), at(102));
  EXPECT_TRUE(members.started());
}

TEST(MembershipTest, AfterARestartWhoWasDoneIsNotWaitedFor) {
  Membership members = membership(3);
  members.restore(40, {{0, 7, true}, {1, 7, false}, {2, 7, true}}, at(100), false);
  members.join(1, 7, peer(1), at(101));
  EXPECT_TRUE(members.started());
  EXPECT_EQ(members.barrier_size(), 1u);
  EXPECT_FALSE(members.all_done());
  members.leave(*members.renew(peer(1), at(102)), true);
  EXPECT_TRUE(members.all_done());
}

TEST(MembershipTest, AJobThatHadEndedEndsAgainUnlessSomebodyComesBack) {
  Membership members = membership(2);
  members.restore(40, {{0, 7, true}, {1, 7, true}}, at(100), false);
  EXPECT_FALSE(members.all_done());
  EXPECT_EQ(members.next_expiry(), at(130));
  members.expire(at(130));
  EXPECT_TRUE(members.all_done());

  Membership resumed = membership(2);
  resumed.restore(40, {{0, 7, true}, {1, 7, true}}, at(100), false);
  resumed.join(0, 8, peer(0), at(101));
  EXPECT_FALSE(resumed.started());  // The other one comes too.
  resumed.join(1, 8, peer(1), at(102));
  EXPECT_TRUE(resumed.started());
}

TEST(MembershipTest, AfterARestartACompleteJobEndsAtOnce) {
  Membership members = membership(2);
  members.restore(40, {{0, 7, true}, {1, 7, true}}, at(100), true);
  EXPECT_TRUE(members.all_done());

  Membership others = membership(2);  // One of them was not done.
  others.restore(40, {{0, 7, true}, {1, 7, false}}, at(100), true);
  EXPECT_FALSE(others.started());
}

}  // namespace
}  // namespace isthmus::server
