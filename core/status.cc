#include "isthmus/status.h"

namespace isthmus {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kOk: return "ok";
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kProtocol: return "protocol error";
    case ErrorCode::kCorruption: return "corruption";
    case ErrorCode::kResourceExhausted: return "resource exhausted";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kUnimplemented: return "unimplemented";
    case ErrorCode::kInternal: return "internal error";
    case ErrorCode::kRefused: return "refused";
    case ErrorCode::kFailed: return "failed";
  }
  return "unknown error";
}

bool is_retryable(ErrorCode code) noexcept {
  return code == ErrorCode::kTimeout || code == ErrorCode::kUnavailable ||
         code == ErrorCode::kResourceExhausted;
}

Status Status::with_context(std::string_view context) && {
  if (!ok()) message_ = std::string(context) + ": " + message_;
  return std::move(*this);
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(isthmus::to_string(code_)) + ": " + message_;
}

}  // namespace isthmus
