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
