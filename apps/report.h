// What a command tells a person when it fails, and its parent.
//
// Threads: any.  Memory: none.  Errors: this is where they end.

#pragma once

#include "core/exit_code.h"
#include "isthmus/status.h"

namespace isthmus::apps {

using core::exit_code;
using core::kExitConnection;
using core::kExitFailed;
using core::kExitInternal;
using core::kExitOk;
using core::kExitTimeout;
using core::kExitUsage;

// Prints "isthmus: message" on stderr if it is an error, and gives its exit code.
int report(const Status& status);

}  // namespace isthmus::apps
