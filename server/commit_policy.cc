#include "server/commit_policy.h"

#include <algorithm>

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

class Dssp final : public CommitPolicy {
 public:
  Dssp(Step least, Step most) noexcept : least_(least), most_(most) {}

  bool may_commit(std::size_t arrived, std::size_t) const noexcept override { return arrived > 0; }
  bool may_proceed(Step finished, Step slowest) const noexcept override {
    return within(finished, slowest, least_);
  }
  // After i steps more the fastest would wait for the next step of the slowest that ends after that or has
  // just ended: it takes as many as let the two end closest to each other.
  Step grant(const Pace& fastest, const Pace& slowest, Step ahead) const noexcept override {
    if (fastest.step_time <= core::Duration(0) || slowest.step_time <= core::Duration(0) || ahead > most_)
      return 0;
    const Step range = std::min(most_ - least_, most_ + 1 - ahead);
    Step best = 0;
    core::Duration shortest = core::Duration::max();
    for (Step i = 0; i <= std::min(range, kMostTried); ++i) {
      const core::Duration wait = distance(*slowest.last, slowest.step_time,
                                           *fastest.last + static_cast<std::int64_t>(i) * fastest.step_time);
      if (wait < shortest) best = i, shortest = wait;
    }
    return best;
  }
  bool collects() const noexcept override { return false; }

 private:
  static constexpr Step kMostTried = 1024;  // A wide bound must not cost a shard its time.

  // From `time` to the nearest of last + step, last + 2 step, ...
  static core::Duration distance(core::TimePoint last, core::Duration step, core::TimePoint time) noexcept {
    const core::TimePoint first = last + step;
    if (time <= first) return first - time;
    const core::Duration since = (time - first) % step;
    return std::min(since, step - since);
  }

  Step least_;
  Step most_;
};

class Async final : public CommitPolicy {
 public:
  bool may_commit(std::size_t arrived, std::size_t) const noexcept override { return arrived > 0; }
  bool may_proceed(Step, Step) const noexcept override { return true; }
  bool collects() const noexcept override { return false; }
};

}  // namespace

Step CommitPolicy::grant(const Pace&, const Pace&, Step) const noexcept { return 0; }

std::unique_ptr<const CommitPolicy> make_commit_policy(const core::CommitConfig& config) {
  switch (config.policy) {
    case core::CommitPolicyKind::kBsp: return std::make_unique<Bsp>();
    case core::CommitPolicyKind::kSsp: return std::make_unique<Ssp>(config.staleness);
    case core::CommitPolicyKind::kDssp:
      return std::make_unique<Dssp>(config.staleness, config.most_staleness);
    case core::CommitPolicyKind::kAsync: break;
  }
  return std::make_unique<Async>();
}

}  // namespace isthmus::server
