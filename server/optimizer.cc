#include "server/optimizer.h"

#include "server/optimizer_rules.h"

namespace isthmus::server {

std::unique_ptr<const Optimizer> make_optimizer(const core::OptimizerConfig& config) {
  using core::OptimizerKind;
  switch (config.kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov: break;
    case OptimizerKind::kAdagrad: return make_adagrad(config);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamw:
    case OptimizerKind::kYogi: return make_adam(config);
    case OptimizerKind::kLamb: return make_lamb(config);
  }
  return make_sgd(config);
}

}  // namespace isthmus::server
