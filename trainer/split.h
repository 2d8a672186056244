// Which worker of a job trains on which samples, and in what order.
//
// Everything here follows from (seed, worker, step), so workers agree on the split without a word, and
// one that restarts goes on with the batch it would have had.
//
// Threads: split_samples() is pure; a BatchSampler belongs to one thread.
// Memory:  four bytes a sample.
// Errors:  a split that gives some worker nothing is kInvalidArgument.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::models {

// A worker's place in its job: workers are counted through the regions in the config's order.
struct WorkerPlace {
  std::uint32_t worker = 0;
  std::uint32_t workers = 1;
};

// Worker `index` of the region of this name; kInvalidArgument when the config has no such worker.
Result<WorkerPlace> worker_place(const core::JobConfig& config, std::string_view region, std::uint32_t index);

// The samples of each worker: every sample is in exactly one list.
// iid        a random order, dealt evenly (sizes differ by one at most).
// dirichlet  each class is shared out by proportions drawn from Dirichlet(alpha, ..., alpha): the
//            smaller alpha, the fewer workers share a class. A draw that leaves a worker with nothing
//            is drawn again, a hundred times at most.
Result<std::vector<std::vector<std::uint32_t>>> split_samples(std::span<const std::uint8_t> labels,
                                                              const core::DataConfig& config,
                                                              std::uint64_t seed, std::uint32_t workers);

// Deals one worker's samples in batches: each epoch a new order, a batch may span two epochs.
class BatchSampler {
 public:
  // REQUIRES: samples not empty, fewer than 2^32; batch > 0.
  BatchSampler(std::vector<std::uint32_t> samples, std::uint32_t batch, std::uint64_t seed,
               std::uint32_t worker);

  // The samples of step `step`, counted from 0. Depends on nothing that was asked before. Valid until
  // the next call.
  std::span<const std::uint32_t> batch_indices(Step step);

 private:
  void shuffle(std::uint64_t epoch);

  const std::vector<std::uint32_t> samples_;
  const std::uint64_t seed_;
  const std::uint32_t worker_;
  std::optional<std::uint64_t> epoch_;  // Whose order `order_` is.
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> batch_;
};

}  // namespace isthmus::models
