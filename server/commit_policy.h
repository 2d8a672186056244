// When a shard folds what its workers sent, and how far ahead of the slowest a worker may run.
//
// Threads: stateless; share freely.  Memory: none.  Errors: none.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/clock.h"
#include "core/job_config.h"
#include "isthmus/tensor.h"

namespace isthmus::server {

// bsp folds a step when all living workers have sent theirs, and nobody starts the next one before.
// ssp folds at once; a worker may be `staleness` steps ahead of the slowest (Ho et al., NIPS 2013).
// dssp is ssp, but the fastest may run on beyond it where that shortens its wait (Zhao et al., ICDCS 2019).
// async folds at once and holds nobody back.
// How fast a worker is, by its last two finished steps.
struct Pace {
  std::optional<core::TimePoint> last;  // When it finished the newest.
  core::Duration step_time{};           // 0: not known yet.
};

class CommitPolicy {
 public:
  virtual ~CommitPolicy() = default;

  // May a slice commit the contributions of one step, `arrived` of them, with `living` workers?
  virtual bool may_commit(std::size_t arrived, std::size_t living) const noexcept = 0;

  // May a worker that has finished `finished` steps go on while the slowest has finished `slowest`?
  virtual bool may_proceed(Step finished, Step slowest) const noexcept = 0;

  // How many steps more the fastest worker may take, when it may not proceed, before it waits; `ahead` is
  // how many it is in front of the slowest.
  virtual Step grant(const Pace& fastest, const Pace& slowest, Step ahead) const noexcept;

  // True: contributions of one step are collected, and folded in the order of their workers.
  virtual bool collects() const noexcept = 0;
};

std::unique_ptr<const CommitPolicy> make_commit_policy(const core::CommitConfig& config);

}  // namespace isthmus::server
