#include "apps/report.h"

#include <gtest/gtest.h>

namespace isthmus::apps {
namespace {

TEST(ReportTest, PrintsErrorsOnly) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(report(Status()), 0);
  EXPECT_EQ(report(Status(ErrorCode::kTimeout, "no answer from virginia")), 3);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "isthmus: no answer from virginia\n");
}

}  // namespace
}  // namespace isthmus::apps
