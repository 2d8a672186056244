#include "core/exit_code.h"

namespace isthmus::core {

int exit_code(const Status& status) noexcept {
  switch (status.code()) {
    case ErrorCode::kOk: return kExitOk;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnimplemented: return kExitUsage;
    case ErrorCode::kTimeout: return kExitTimeout;
    case ErrorCode::kUnavailable:
    case ErrorCode::kRefused: return kExitConnection;
    case ErrorCode::kProtocol:
    case ErrorCode::kCorruption:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kCancelled:
    case ErrorCode::kFailed: return kExitFailed;
    case ErrorCode::kInternal: return kExitInternal;
  }
  return kExitInternal;
}

}  // namespace isthmus::core
