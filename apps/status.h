// isthmus status: asks the shards of a running job, and shows what they say.
//
// Threads: the caller's, and one of ZeroMQ while they are asked.
// Memory:  one small message a shard.
// Errors:  shards that do not answer are part of the picture (StatusView::silent).

#pragma once

#include <string>

#include "apps/status_report.h"
#include "core/job_config.h"
#include "core/units.h"

namespace isthmus::apps {

// All shards of `region` ("": of every region) at once, each given at most `timeout`. A shard of another job
// that has the address counts as silent. REQUIRES: `region` is one of the config's, or empty.
// `norms`: those of the parameters too, each a pass over all of them at the shards.
StatusView look_at_job(const core::JobConfig& config, const std::string& region, core::Duration timeout,
                       bool norms = false);

}  // namespace isthmus::apps
