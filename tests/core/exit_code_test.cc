#include "core/exit_code.h"

#include <gtest/gtest.h>

namespace isthmus::core {
namespace {

TEST(ExitCodeTest, EveryErrorHasTheCodeThatScriptsKnow) {
  const std::pair<ErrorCode, int> expected[] = {
      {ErrorCode::kOk, 0},         {ErrorCode::kInvalidArgument, 4}, {ErrorCode::kNotFound, 4},
      {ErrorCode::kTimeout, 3},    {ErrorCode::kUnavailable, 2},     {ErrorCode::kProtocol, 1},
      {ErrorCode::kCorruption, 1}, {ErrorCode::kFailed, 1},          {ErrorCode::kResourceExhausted, 1},
      {ErrorCode::kCancelled, 1},  {ErrorCode::kUnimplemented, 4},   {ErrorCode::kInternal, 5},
      {ErrorCode::kRefused, 2},
  };
  for (const auto& [code, exit] : expected) EXPECT_EQ(exit_code(Status(code, "")), exit) << to_string(code);
}

}  // namespace
}  // namespace isthmus::core
