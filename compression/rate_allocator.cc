#include "compression/rate_allocator.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace isthmus::compression {
namespace {

using core::CodecKind;

constexpr int kBisections = 64;
constexpr double kUsualShare = 0.1;  // Of the newest norm in the usual one.
constexpr double kUrgencyStep = 2.0;
constexpr double kStretchStep = 1.1;

// All slices at one price.
struct Plan {
  std::vector<SliceChoice> choices;
  std::uint64_t bytes = 0;
};

class Allocator {
 public:
  Allocator(std::span<const SliceChange> changes, const AllocatorOptions& options,
            const AllocatorState& state)
      : options_(options), state_(state) {
    slices_.reserve(changes.size());
    for (const SliceChange& change : changes) slices_.emplace_back(change, options.min_keep);
  }

  std::span<const SliceChoices> slices() const { return slices_; }

  Plan at_price(double price, bool sticky) const {
    const double threshold = std::sqrt(price * kept_bytes_);
    return plan([&](std::size_t i) { return best(i, price, threshold, sticky); });
  }

  // The same kinds as in `plan`, and all that is sparse at this threshold.
  Plan at_threshold(const Plan& like, double threshold) const {
    return plan([&](std::size_t i) {
      const bool sparse = like.choices[i].config.kind == CodecKind::kTopk;
      return sparse ? slices_[i].sparse(own(threshold, i)) : like.choices[i];
    });
  }

  double loss(const Plan& plan, bool sticky) const {
    double loss = 0;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const SliceChoice& choice = plan.choices[i];
      loss += state_.slices[i].urgency * choice.loss * favour(i, choice, sticky);
    }
    return loss;
  }

 private:
  template <typename Choose>
  Plan plan(Choose choose) const {
    Plan plan;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      plan.choices.push_back(choose(i));
      plan.bytes += plan.choices.back().bytes;
    }
    return plan;
  }

  double own(double threshold, std::size_t slice) const {
    return threshold / std::sqrt(state_.slices[slice].urgency);
  }

  // A slice's kind as it was is taken for a little better than it is.
  double favour(std::size_t i, const SliceChoice& choice, bool sticky) const {
    const AllocatorState::Slice& before = state_.slices[i];
    const bool stays = sticky && before.usual_norm > 0 && choice.config.kind == before.kind;
    return stays ? 1 - options_.hysteresis : 1;
  }

  SliceChoice best(std::size_t i, double price, double threshold, bool sticky) const {
    const SliceChoices& slice = slices_[i];
    if (slice.always_dense()) return slice.dense().back();
    const auto cost = [&](const SliceChoice& choice) {
      const double lost = state_.slices[i].urgency * choice.loss;
      return (lost + price * static_cast<double>(choice.bytes)) * favour(i, choice, sticky);
    };
    SliceChoice best = slice.sparse(own(threshold, i));
    for (const SliceChoice& choice : slice.dense()) {
      if (cost(choice) < cost(best)) best = choice;
    }
    return best;
  }

  const AllocatorOptions& options_;
  const AllocatorState& state_;
  std::vector<SliceChoices> slices_;
  const double kept_bytes_ = SliceChoices::bytes_of_kept();
};

// Prices as powers of two: from where a byte is worth next to nothing to where nothing is worth a byte.
constexpr double kCheapest = -400;
constexpr double kDearest = 400;
constexpr double kLowestThreshold = -160;  // As powers of two, too.
constexpr double kHighestThreshold = 140;

// At the lowest price at which all fits, and at a hair less, where a slice takes a denser codec and it does
// not.
struct Boundary {
  Plan fits;
  std::optional<Plan> over;
};

std::optional<Boundary> find_boundary(const Allocator& allocator, std::uint64_t budget, bool sticky) {
  Boundary found{allocator.at_price(std::exp2(kDearest), sticky), std::nullopt};
  if (found.fits.bytes > budget) return std::nullopt;
  double low = kCheapest;
  double high = kDearest;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    Plan plan = allocator.at_price(std::exp2(middle), sticky);
    if (plan.bytes <= budget) {
      high = middle;
      found.fits = std::move(plan);
    } else {
      low = middle;
      found.over = std::move(plan);
    }
  }
  return found;
}

struct Spent {
  Plan plan;
  double threshold;
};

// With the kinds of `like`, the lowest threshold at which all fits; nothing if it does at none.
std::optional<Spent> spend(const Allocator& allocator, std::uint64_t budget, const Plan& like) {
  double low = kLowestThreshold;
  double high = kHighestThreshold;
  Spent spent{allocator.at_threshold(like, std::exp2(high)), 0};
  if (spent.plan.bytes > budget) return std::nullopt;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    Plan plan = allocator.at_threshold(like, std::exp2(middle));
    const bool fits = plan.bytes <= budget;
    (fits ? high : low) = middle;
    if (fits) spent.plan = std::move(plan);
  }
  spent.threshold = std::exp2(high);
  return spent;
}

// Between the two plans of a boundary lie bytes that neither spends: the one has the sparse slices take more,
// the other has them take less. Whichever loses less.
std::optional<Spent> spend_all(const Allocator& allocator, std::uint64_t budget, bool sticky) {
  const std::optional<Boundary> boundary = find_boundary(allocator, budget, sticky);
  if (!boundary) return std::nullopt;
  std::optional<Spent> best = spend(allocator, budget, boundary->fits);
  if (!boundary->over) return best;
  std::optional<Spent> other = spend(allocator, budget, *boundary->over);
  const bool better =
      other && (!best || allocator.loss(other->plan, sticky) < allocator.loss(best->plan, sticky));
  return better ? other : best;
}

void remember(const Allocator& allocator, const Plan& plan, const AllocatorOptions& options,
              AllocatorState& state) {
  std::size_t growing = 0;
  for (std::size_t i = 0; i < state.slices.size(); ++i) {
    AllocatorState::Slice& slice = state.slices[i];
    const double norm = std::sqrt(allocator.slices()[i].energy());
    slice.kind = plan.choices[i].config.kind;
    if (slice.usual_norm > 0 && norm > options.growth * slice.usual_norm) {
      slice.urgency = std::min(slice.urgency * kUrgencyStep, options.max_urgency);
      ++growing;
    } else {
      slice.urgency = std::max(slice.urgency / kUrgencyStep, 1.0);
    }
    slice.usual_norm =
        slice.usual_norm > 0 ? slice.usual_norm + kUsualShare * (norm - slice.usual_norm) : norm;
  }
  const bool all_over = 2 * growing > state.slices.size();
  state.stretch = all_over ? std::min(state.stretch * kStretchStep, options.max_stretch)
                           : std::max(state.stretch / kStretchStep, 1.0);
}

}  // namespace

Allocation allocate(std::span<const SliceChange> slices, std::uint64_t budget_bytes,
                    const AllocatorOptions& options, AllocatorState& state) {
  if (state.slices.size() != slices.size()) state = {std::vector<AllocatorState::Slice>(slices.size()), 1};
  const Allocator allocator(slices, options, state);
  Allocation allocation;
  // Kinds that stay as they were may take more than there is: then they do not.
  std::optional<Spent> found = spend_all(allocator, budget_bytes, true);
  if (!found) found = spend_all(allocator, budget_bytes, false);
  if (!found) {
    allocation.fits = false;
    found = Spent{allocator.at_price(std::exp2(kDearest), false), 0};
  }
  bool sparse = false;
  for (const SliceChoice& choice : found->plan.choices) {
    allocation.codecs.push_back(choice.config);
    sparse |= choice.config.kind == CodecKind::kTopk;
  }
  allocation.threshold = sparse ? found->threshold : 0;
  allocation.bytes = found->plan.bytes;
  remember(allocator, found->plan, options, state);
  allocation.stretch = state.stretch;
  return allocation;
}

}  // namespace isthmus::compression
