// What a process tells its parent: the same codes for every program of Isthmus.
//
// Threads: any.  Memory: none.  Errors: this is where they end.

#pragma once

#include "isthmus/status.h"

namespace isthmus::core {

// Stable: scripts depend on them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;      // The job failed.
inline constexpr int kExitConnection = 2;  // Cannot connect or authenticate; an address that is taken.
inline constexpr int kExitTimeout = 3;
inline constexpr int kExitUsage = 4;  // Bad arguments or config.
inline constexpr int kExitInternal = 5;

int exit_code(const Status& status) noexcept;

}  // namespace isthmus::core
