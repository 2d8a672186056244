// The learning rate's schedule.
//
// Threads: pure.  Memory: none.  Errors: none.

#pragma once

#include <cstdint>

#include "core/job_config.h"

namespace isthmus::server {

// The learning rate of step `step` (from 0; of the slowest worker). In the warm-up's w steps it is (step +
// 1) / w of the whole; the schedule begins where that ends. A schedule of no steps is constant.
float scheduled_learning_rate(const core::OptimizerConfig& config, std::uint64_t step);

}  // namespace isthmus::server
