// A job's config as what a Client must be told.
//
// Threads: pure.  Memory: owns.  Errors: kInvalidArgument for a region that the job does not have.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job_config.h"
#include "isthmus/client.h"
#include "isthmus/config.h"
#include "isthmus/status.h"

namespace isthmus::trainer {

Result<ClientConfig> client_config(const core::JobConfig& config, std::string_view region,
                                   std::uint32_t worker, std::span<const TensorSpec> tensors,
                                   std::function<void(std::string_view)> log);

// Memory for one value of each element of a table, and the views that the Client and a Workload take.
class TensorSet {
 public:
  explicit TensorSet(std::span<const TensorSpec> table);

  std::span<const TensorView> views() const noexcept { return views_; }
  std::span<const ConstTensorView> const_views() const noexcept { return const_views_; }
  std::vector<Gradient> gradients() const;
  std::vector<Parameters> parameters() const;

 private:
  std::vector<std::vector<float>> values_;
  std::vector<TensorView> views_;
  std::vector<ConstTensorView> const_views_;
};

}  // namespace isthmus::trainer
