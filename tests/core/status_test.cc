#include "isthmus/status.h"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(StatusTest, SuccessIsTheDefault) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().to_string(), "ok");
}

TEST(StatusTest, EachLayerAddsItsContextInFront) {
  Status status =
      Status(ErrorCode::kUnavailable, "connection reset").with_context("read").with_context("link 2");
  EXPECT_EQ(status.to_string(), "unavailable: link 2: read: connection reset");
}

TEST(StatusTest, ContextLeavesASuccessAlone) { EXPECT_TRUE(Status().with_context("read").ok()); }

TEST(StatusTest, OnlyTroubleThatMayPassIsRetryable) {
  EXPECT_TRUE(is_retryable(ErrorCode::kTimeout));
  EXPECT_TRUE(is_retryable(ErrorCode::kUnavailable));
  EXPECT_TRUE(is_retryable(ErrorCode::kResourceExhausted));
  EXPECT_FALSE(is_retryable(ErrorCode::kRefused));
  EXPECT_FALSE(is_retryable(ErrorCode::kFailed));
  EXPECT_FALSE(is_retryable(ErrorCode::kInternal));
}

TEST(ResultTest, HoldsAValueOrAnError) {
  Result<int> good = 7;
  Result<int> bad = Status(ErrorCode::kNotFound, "no such region");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 7);
  EXPECT_TRUE(good.status().ok());
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace isthmus
