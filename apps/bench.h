// What `isthmus bench` can measure.
//
// Threads: as other verbs (apps/command.h).  Memory: none.  Errors: as other verbs.

#pragma once

#include "apps/command.h"

namespace isthmus::apps {

int run_bench_codec(Arguments arguments);
int run_bench_push_pull(Arguments arguments);

}  // namespace isthmus::apps
