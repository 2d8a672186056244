#include "server/commit_policy.h"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus::server {
namespace {

using core::CommitPolicyKind;

std::unique_ptr<const CommitPolicy> policy(CommitPolicyKind kind, Step staleness = 3) {
  return make_commit_policy({.policy = kind, .staleness = staleness});
}

TEST(CommitPolicyTest, BspWaitsForEveryLivingWorker) {
  const auto bsp = policy(CommitPolicyKind::kBsp);
  EXPECT_TRUE(bsp->collects());
  EXPECT_FALSE(bsp->may_commit(0, 0));
  EXPECT_FALSE(bsp->may_commit(0, 3));
  EXPECT_FALSE(bsp->may_commit(2, 3));
  EXPECT_TRUE(bsp->may_commit(3, 3));
  // A worker died after it had sent: the barrier shrinks and must not hang.
  EXPECT_TRUE(bsp->may_commit(3, 2));
  EXPECT_TRUE(bsp->may_proceed(4, 4));
  EXPECT_FALSE(bsp->may_proceed(5, 4));
}

// Ho et al.'s rule with s = 2: clocks {3,0} block, {3,1} and {2,0} go.
TEST(CommitPolicyTest, SspBoundsTheDistanceToTheSlowest) {
  const auto ssp = policy(CommitPolicyKind::kSsp, 2);
  EXPECT_FALSE(ssp->may_proceed(3, 0));
  EXPECT_TRUE(ssp->may_proceed(3, 1));
  EXPECT_TRUE(ssp->may_proceed(2, 0));
}

TEST(CommitPolicyTest, SspFoldsEachContributionAtOnce) {
  const auto ssp = policy(CommitPolicyKind::kSsp);
  EXPECT_FALSE(ssp->collects());
  EXPECT_FALSE(ssp->may_commit(0, 4));
  EXPECT_TRUE(ssp->may_commit(1, 4));
}

TEST(CommitPolicyTest, SspWithoutStalenessIsLockStep) {
  const auto ssp = policy(CommitPolicyKind::kSsp, 0);
  EXPECT_TRUE(ssp->may_proceed(7, 7));
  EXPECT_FALSE(ssp->may_proceed(8, 7));
}

// Zhao et al.'s controller: the fast worker's last steps ended at 9 and 10 s, the slow one's at 5.3 and
// 9.5 s. After 4 steps more it would wait for 0.3 s only.
TEST(CommitPolicyTest, DsspLetsTheFastestRunToWhereItWaitsLeast) {
  using std::chrono::milliseconds;
  const auto at = [](int ms) { return core::TimePoint(milliseconds(ms)); };
  const Pace fast{at(10'000), milliseconds(1'000)}, slow{at(9'500), milliseconds(4'200)};
  const auto dssp = make_commit_policy(
      {.policy = CommitPolicyKind::kDssp, .staleness = 3, .most_staleness = 9});  // r_max is 6.
  EXPECT_FALSE(dssp->collects());
  EXPECT_TRUE(dssp->may_proceed(3, 0));
  EXPECT_FALSE(dssp->may_proceed(4, 0));
  EXPECT_EQ(dssp->grant(fast, slow, 4), 4u);
  // Never further than the upper bound: it starts a step 9 ahead at most.
  EXPECT_EQ(dssp->grant(fast, slow, 7), 3u);
  EXPECT_EQ(dssp->grant(fast, slow, 9), 1u);
  EXPECT_EQ(dssp->grant(fast, slow, 10), 0u);
  // Without two steps of each there is nothing to decide by.
  EXPECT_EQ(dssp->grant({at(10'000), {}}, slow, 4), 0u);
  EXPECT_EQ(dssp->grant(fast, {at(9'500), {}}, 4), 0u);
  EXPECT_EQ(dssp->grant({}, {}, 4), 0u);
  // A bound of any size costs no more time than another.
  const auto wide = make_commit_policy(
      {.policy = CommitPolicyKind::kDssp, .staleness = 3, .most_staleness = Step{1} << 31});
  EXPECT_EQ(wide->grant(fast, slow, 4), 8u) << "18 s, and the slow one ends at 17.9 s";
  for (const auto kind : {CommitPolicyKind::kSsp, CommitPolicyKind::kBsp})
    EXPECT_EQ(policy(kind)->grant(fast, slow, 4), 0u);
}

TEST(CommitPolicyTest, AsyncHoldsNobodyBack) {
  const auto async = policy(CommitPolicyKind::kAsync);
  EXPECT_FALSE(async->collects());
  EXPECT_FALSE(async->may_commit(0, 2));
  EXPECT_TRUE(async->may_commit(1, 2));
  EXPECT_TRUE(async->may_proceed(std::numeric_limits<Step>::max(), 0));
}

// "Slowest" can be newer than what a worker that just rejoined has finished.
TEST(CommitPolicyTest, WhoeverIsBehindMayAlwaysGoOn) {
  for (auto kind : {CommitPolicyKind::kBsp, CommitPolicyKind::kSsp, CommitPolicyKind::kAsync})
    EXPECT_TRUE(policy(kind)->may_proceed(0, 9));
}

}  // namespace
}  // namespace isthmus::server
