// What a process tells its parent, and what it tells a person when it fails.
//
// Threads: any.  Memory: none.  Errors: this is where they end.

#pragma once

#include "isthmus/status.h"

namespace isthmus::apps {

// Stable: scripts depend on them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;      // The job failed.
inline constexpr int kExitConnection = 2;  // Cannot connect or authenticate; an address that is taken.
inline constexpr int kExitTimeout = 3;
inline constexpr int kExitUsage = 4;  // Bad arguments or config.
inline constexpr int kExitInternal = 5;

int exit_code(const Status& status) noexcept;

// Prints "isthmus: message" on stderr if it is an error, and gives its exit code.
int report(const Status& status);

}  // namespace isthmus::apps
