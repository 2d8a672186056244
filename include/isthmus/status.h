// How Isthmus says that something did not work.
//
// Threads: values; no shared state.
// Memory:  a success is one pointer-sized, allocation-free value.
// Errors:  this header is how they are spoken; nothing here throws.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace isthmus {

enum class ErrorCode : int {
  kOk = 0,
  kInvalidArgument = 1,    // The caller or the config is wrong; retrying cannot help.
  kNotFound = 2,           // A named thing does not exist.
  kTimeout = 3,            // A deadline passed.
  kUnavailable = 4,        // A peer cannot be reached now; retrying may help.
  kProtocol = 5,           // A peer sent something that the protocol forbids.
  kCorruption = 6,         // Bytes failed a check.
  kResourceExhausted = 7,  // A limit (memory, disk, mailbox, quota) is reached.
  kCancelled = 8,          // Somebody asked for the end.
  kUnimplemented = 9,      // Known, but not in this version.
  kInternal = 10,          // A bug of ours, or an exception of a library.
  kRefused = 11,           // A peer declined us: wrong job, layout, version, key.
  kFailed = 12,            // The job failed: it diverged, or lost a process or a region for good.
};

// "timeout", "refused", ...: lower case, stable, for logs and JSON.
std::string_view to_string(ErrorCode code) noexcept;

// The only retry rule: true for kTimeout, kUnavailable and kResourceExhausted.
bool is_retryable(ErrorCode code) noexcept;

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;  // Success.
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const noexcept { return code_ == ErrorCode::kOk; }
  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

  // "context: message". Each layer adds one; no effect on a success.
  Status with_context(std::string_view context) &&;

  // "timeout: region virginia: no heartbeat for 5 s", or "ok".
  std::string to_string() const;

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

// A T or the Status that says why there is none; the shape of std::expected.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // REQUIRES: ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Success, or the error.
  Status status() const& { return ok() ? Status() : std::get<1>(state_); }
  Status status() && { return ok() ? Status() : std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace isthmus

#define ISTHMUS_RETURN_IF_ERROR(expr)                                                              \
  do {                                                                                             \
    if (::isthmus::Status isthmus_status_ = (expr); !isthmus_status_.ok()) return isthmus_status_; \
  } while (false)
