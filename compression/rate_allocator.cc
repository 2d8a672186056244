#include "compression/rate_allocator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "compression/codec.h"

namespace isthmus::compression {
namespace {

using core::CodecConfig;
using core::CodecKind;

constexpr int kBisections = 64;
constexpr double kUsualShare = 0.1;  // Of the newest norm in the usual one.
constexpr double kUrgencyStep = 2.0;
constexpr double kStretchStep = 1.1;

// A quantiser rounds to multiples of (largest magnitude of its block) / levels; levels 0: it rounds each
// element by itself, and what that loses is a share of the energy.
struct DenseKind {
  CodecKind kind;
  std::uint64_t block;
  double levels;
  double nmse;
};
constexpr double kFp16Nmse = 4.3e-8;  // Of topk's values too.
// Cheapest first: where two lose the same, the cheaper is taken.
constexpr DenseKind kDense[] = {
    {CodecKind::kInt8, 256, 127, 0},
    {CodecKind::kFp16, 0, 0, kFp16Nmse},
    {CodecKind::kFp32, 0, 0, 0},
};

std::uint64_t bytes_of(const CodecConfig& config, std::uint64_t elements) {
  return make_codec(config)->max_encoded_bytes(elements);
}

// What a slice may be given: so many bytes, so much lost.
struct Choice {
  CodecConfig config;
  std::uint64_t bytes = 0;
  double loss = 0;
};

// One slice's histogram, with what lies below and above each bin summed up.
class Slice {
 public:
  Slice(const SliceChange& change, const AllocatorOptions& options)
      : change_(change), scale_(scale_of(change)) {
    for (std::size_t i = 0; i < MagnitudeHistogram::kBins; ++i) {
      below_[i] = energy_;
      energy_ += count(i) * MagnitudeHistogram::mean_square(i);
    }
    double above = 0;
    for (std::size_t i = MagnitudeHistogram::kBins; i-- > 0;) above_[i] = above += count(i);
    const double least = std::ceil(options.min_keep * static_cast<double>(change.elements));
    least_kept_ = static_cast<std::uint64_t>(
        std::clamp(least, 1.0, std::max(1.0, static_cast<double>(change.elements))));
    for (const DenseKind& kind : kDense) {
      const CodecConfig config{kind.kind};
      dense_.push_back({config, bytes_of(config, change.elements), loss_of(kind)});
    }
  }

  double energy() const { return energy_; }
  bool always_dense() const { return change_.dense; }
  std::span<const Choice> dense() const { return dense_; }
  Choice full() const { return dense_.back(); }

  // topk with what reaches the threshold, or the least.
  Choice sparse(double threshold) const {
    const std::size_t bin = bin_of(threshold);
    const double next = above_[bin + 1];
    const double above =
        above_[bin] > next ? MagnitudeHistogram::reaching(threshold, bin, above_[bin], next) : next;
    const double left = std::max(threshold, MagnitudeHistogram::lower_bound(bin));
    const double dropped = below_[bin] + (above_[bin] - above) * MagnitudeHistogram::mean_square(bin, left);
    const double lost = dropped + kFp16Nmse * std::max(energy_ - dropped, 0.0);
    const auto kept = std::clamp(static_cast<std::uint64_t>(std::llround(above)),
                                 std::min(least_kept_, change_.elements), change_.elements);
    CodecConfig config{CodecKind::kTopk};
    config.keep = std::min(1.0, static_cast<double>(std::max<std::uint64_t>(kept, 1)) /
                                    static_cast<double>(std::max<std::uint64_t>(change_.elements, 1)));
    return {config, bytes_of(config, change_.elements), lost};
  }

 private:
  // A sample's counts are of fewer elements than there are.
  static double scale_of(const SliceChange& change) {
    const std::uint64_t total = change.magnitudes.total();
    return total == 0 ? 0.0 : static_cast<double>(change.elements) / static_cast<double>(total);
  }

  double count(std::size_t bin) const { return scale_ * static_cast<double>(change_.magnitudes.bins()[bin]); }

  static std::size_t bin_of(double magnitude) {
    std::size_t low = 0;
    std::size_t high = MagnitudeHistogram::kBins;
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (MagnitudeHistogram::lower_bound(middle) <= magnitude ? low : high) = middle;
    }
    return low;
  }

  // The magnitude that a block's largest one has typically: one in `block` elements reaches it.
  double largest_of(std::uint64_t block) const {
    const double aim = std::max(static_cast<double>(change_.elements) / static_cast<double>(block), 1.0);
    std::size_t bin = MagnitudeHistogram::kBins - 1;
    while (bin > 0 && above_[bin] < aim) --bin;
    return (MagnitudeHistogram::lower_bound(bin) + MagnitudeHistogram::lower_bound(bin + 1)) / 2;
  }

  double loss_of(const DenseKind& kind) const {
    if (kind.levels == 0) return kind.nmse * energy_;
    const double step = largest_of(kind.block) / kind.levels;
    // Rounding loses a twelfth of a step's square, or all of an element that is smaller.
    const double rounding = step * step / 12;
    double loss = 0;
    for (std::size_t i = 0; i < MagnitudeHistogram::kBins; ++i)
      loss += count(i) * std::min(MagnitudeHistogram::mean_square(i), rounding);
    return loss;
  }

  const SliceChange& change_;
  double scale_;
  double energy_ = 0;
  std::uint64_t least_kept_ = 1;
  std::array<double, MagnitudeHistogram::kBins> below_{};      // The energy of all bins below.
  std::array<double, MagnitudeHistogram::kBins + 1> above_{};  // The count of this bin and all above.
  std::vector<Choice> dense_;
};

// All slices at one price.
struct Plan {
  std::vector<Choice> choices;
  std::uint64_t bytes = 0;
};

class Allocator {
 public:
  Allocator(std::span<const SliceChange> changes, const AllocatorOptions& options,
            const AllocatorState& state)
      : options_(options), state_(state) {
    slices_.reserve(changes.size());
    for (const SliceChange& change : changes) slices_.emplace_back(change, options);
    // What a kept element costs, for the price at which it is worth that. Of one in a hundred: the cost
    // hardly depends on how many are kept.
    constexpr std::uint64_t kElements = 1 << 20;
    CodecConfig config{CodecKind::kTopk};
    config.keep = 0.01;
    kept_bytes_ = static_cast<double>(bytes_of(config, kElements)) / (config.keep * kElements);
  }

  std::span<const Slice> slices() const { return slices_; }

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

  double threshold_of(double price) const { return std::sqrt(price * kept_bytes_); }

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

  Choice best(std::size_t i, double price, double threshold, bool sticky) const {
    const Slice& slice = slices_[i];
    if (slice.always_dense()) return slice.full();
    const AllocatorState::Slice& before = state_.slices[i];
    const auto cost = [&](const Choice& choice) {
      const double cost = before.urgency * choice.loss + price * static_cast<double>(choice.bytes);
      const bool stays = sticky && before.usual_norm > 0 && choice.config.kind == before.kind;
      return stays ? cost * (1 - options_.hysteresis) : cost;
    };
    Choice best = slice.sparse(own(threshold, i));
    for (const Choice& choice : slice.dense()) {
      if (cost(choice) < cost(best)) best = choice;
    }
    return best;
  }

  const AllocatorOptions& options_;
  const AllocatorState& state_;
  std::vector<Slice> slices_;
  double kept_bytes_ = 0;
};

// Prices as powers of two: from where a byte is worth next to nothing to where nothing is worth a byte.
constexpr double kCheapest = -400;
constexpr double kDearest = 400;

struct Found {
  Plan plan;
  double price;
};

// The lowest price at which all fits; nothing when it does not at any.
std::optional<Found> lowest_price(const Allocator& allocator, std::uint64_t budget, bool sticky) {
  Found found{allocator.at_price(std::exp2(kDearest), sticky), std::exp2(kDearest)};
  if (found.plan.bytes > budget) return std::nullopt;
  double low = kCheapest;
  double high = kDearest;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    Plan plan = allocator.at_price(std::exp2(middle), sticky);
    const bool fits = plan.bytes <= budget;
    (fits ? high : low) = middle;
    if (fits) found = {std::move(plan), std::exp2(middle)};
  }
  return found;
}

// Some bytes are left where the next lower price would turn a slice to a denser codec: they go to the sparse
// ones, by a lower threshold. Returns the threshold.
double spend_the_rest(const Allocator& allocator, std::uint64_t budget, Found& found) {
  double high = std::log2(allocator.threshold_of(found.price));
  double low = kCheapest / 2;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    Plan plan = allocator.at_threshold(found.plan, std::exp2(middle));
    const bool fits = plan.bytes <= budget;
    (fits ? high : low) = middle;
    if (fits) found.plan = std::move(plan);
  }
  return std::exp2(high);
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
  std::optional<Found> found = lowest_price(allocator, budget_bytes, true);
  if (!found) found = lowest_price(allocator, budget_bytes, false);
  if (!found) {
    allocation.fits = false;
    const double dearest = std::exp2(kDearest);
    found = Found{allocator.at_price(dearest, false), dearest};
  } else {
    allocation.threshold = spend_the_rest(allocator, budget_bytes, *found);
  }
  bool sparse = false;
  for (const Choice& choice : found->plan.choices) {
    allocation.codecs.push_back(choice.config);
    sparse |= choice.config.kind == CodecKind::kTopk;
  }
  if (!sparse) allocation.threshold = 0;
  allocation.bytes = found->plan.bytes;
  remember(allocator, found->plan, options, state);
  allocation.stretch = state.stretch;
  return allocation;
}

}  // namespace isthmus::compression
