#include "server/commit_policy.h"

namespace isthmus::server {
namespace {

// True when `finished` is at most `bound` steps ahead; a worker that is behind always is.
bool within(Step finished, Step slowest, Step bound) noexcept {
  return finished <= slowest || finished - slowest <= bound;
}

class Bsp final : public CommitPolicy {
 public:
  bool may_commit(std::size_t arrived, std::size_t living) const noexcept override {
    return living > 0 && arrived >= living;
  }
  bool may_proceed(Step finished, Step slowest) const noexcept override {
    return within(finished, slowest, 0);
  }
  bool collects() const noexcept override { return true; }
};

class Ssp final : public CommitPolicy {
 public:
  explicit Ssp(Step staleness) noexcept : staleness_(staleness) {}

  bool may_commit(std::size_t arrived, std::size_t) const noexcept override { return arrived > 0; }
  bool may_proceed(Step finished, Step slowest) const noexcept override {
    return within(finished, slowest, staleness_);
  }
  bool collects() const noexcept override { return false; }

 private:
  Step staleness_;
};

class Async final : public CommitPolicy {
 public:
  bool may_commit(std::size_t arrived, std::size_t) const noexcept override { return arrived > 0; }
  bool may_proceed(Step, Step) const noexcept override { return true; }
  bool collects() const noexcept override { return false; }
};

}  // namespace

std::unique_ptr<const CommitPolicy> make_commit_policy(const core::CommitConfig& config) {
  switch (config.policy) {
    case core::CommitPolicyKind::kBsp: return std::make_unique<Bsp>();
    case core::CommitPolicyKind::kSsp: return std::make_unique<Ssp>(config.staleness);
    case core::CommitPolicyKind::kAsync: break;
  }
  return std::make_unique<Async>();
}

}  // namespace isthmus::server
