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

// What is left of it for a gradient that is `staleness` commits old: 1 / staleness, but `least` at least
// (Zhang et al., IJCAI 2016; the floor is for workers that are always late, whose data would not count).
double stale_share(std::uint64_t staleness, double least);

}  // namespace isthmus::server
