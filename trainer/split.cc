#include "trainer/split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/random.h"
#include "trainer/streams.h"

namespace isthmus::models {
namespace {

using Parts = std::vector<std::vector<std::uint32_t>>;

constexpr std::size_t kClasses = 256;      // Labels are bytes.
constexpr std::uint32_t kIidClass = 1000;  // The split stream of samples without regard to class.

Parts split_iid(std::size_t samples, std::uint64_t seed, std::uint32_t workers) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  core::Random(seed, {kSplitStream, kIidClass, 0}).shuffle(std::span(order));
  Parts parts(workers);
  for (std::uint32_t w = 0; w < workers; ++w) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(samples * w / workers);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(samples * (w + 1) / workers);
    parts[w].assign(begin, end);
  }
  return parts;
}

// The logarithm of a Gamma(shape, 1) variate (Marsaglia and Tsang, 2000). As a logarithm, because for a
// small shape the variate itself is often less than the smallest double.
double log_gamma_variate(double shape, core::Random& random) {
  // Gamma(a) is Gamma(a + 1) * U^(1/a), which also serves shapes below 1.
  const double d = shape + 1.0 - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = random.normal();
    const double v = std::pow(1.0 + c * x, 3);
    if (v <= 0.0) continue;
    const double u = 1.0 - random.uniform();  // (0, 1]
    if (std::log(u) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    return std::log(d * v) + std::log(1.0 - random.uniform()) / shape;
  }
}

// Cumulated shares of `parts` parts, the last exactly 1.
std::vector<double> dirichlet_cumulated(double alpha, std::uint32_t parts, core::Random& random) {
  std::vector<double> shares(parts);
  for (double& share : shares) share = log_gamma_variate(alpha, random);
  const double largest = *std::max_element(shares.begin(), shares.end());
  for (double& share : shares) share = std::exp(share - largest);
  std::partial_sum(shares.begin(), shares.end(), shares.begin());
  const double total = shares.back();
  for (double& share : shares) share /= total;
  return shares;
}

Parts split_dirichlet(const std::array<std::vector<std::uint32_t>, kClasses>& classes, double alpha,
                      std::uint64_t seed, std::uint32_t workers, std::uint32_t attempt) {
  Parts parts(workers);
  for (std::uint32_t label = 0; label < kClasses; ++label) {
    std::vector<std::uint32_t> order = classes[label];
    if (order.empty()) continue;
    core::Random random(seed, {kSplitStream, label, attempt});
    random.shuffle(std::span(order));
    const std::vector<double> until = dirichlet_cumulated(alpha, workers, random);
    std::size_t begin = 0;
    for (std::uint32_t w = 0; w < workers; ++w) {
      const auto end = static_cast<std::size_t>(std::llround(until[w] * static_cast<double>(order.size())));
      parts[w].insert(parts[w].end(), order.begin() + static_cast<std::ptrdiff_t>(begin),
                      order.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
  }
  return parts;
}

bool all_have_samples(const Parts& parts) {
  return std::none_of(parts.begin(), parts.end(), [](const auto& part) { return part.empty(); });
}

}  // namespace

Result<WorkerPlace> worker_place(const core::JobConfig& config, std::string_view region,
                                 std::uint32_t index) {
  WorkerPlace place{.worker = 0, .workers = 0};
  bool found = false;
  for (const core::RegionConfig& candidate : config.regions) {
    if (candidate.name == region) {
      found = index < candidate.workers;
      place.worker = place.workers + index;
    }
    place.workers += candidate.workers;
  }
  if (found) return place;
  return Status(ErrorCode::kInvalidArgument, "the config has no worker " + std::to_string(index) +
                                                 " in region '" + std::string(region) + "'");
}

Result<Parts> split_samples(std::span<const std::uint8_t> labels, const core::DataConfig& config,
                            std::uint64_t seed, std::uint32_t workers) {
  if (labels.size() > std::numeric_limits<std::uint32_t>::max())
    return Status(ErrorCode::kInvalidArgument, "trainer.data: more than 2^32 samples");
  if (workers == 0 || workers > labels.size())
    return Status(ErrorCode::kInvalidArgument, "trainer.data: " + std::to_string(labels.size()) +
                                                   " samples cannot be split over " +
                                                   std::to_string(workers) + " workers");
  if (config.split == core::SplitKind::kIid) return split_iid(labels.size(), seed, workers);

  constexpr double kMinAlpha = 1e-3, kMaxAlpha = 1e6;
  if (!(config.alpha >= kMinAlpha && config.alpha <= kMaxAlpha))
    return Status(ErrorCode::kInvalidArgument, "trainer.data.split: alpha is not in [0.001, 1000000]");
  std::array<std::vector<std::uint32_t>, kClasses> classes;
  for (std::uint32_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(i);
  constexpr std::uint32_t kAttempts = 100;
  for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    Parts parts = split_dirichlet(classes, config.alpha, seed, workers, attempt);
    if (all_have_samples(parts)) return parts;
  }
  return Status(ErrorCode::kInvalidArgument,
                "trainer.data.split: dirichlet(" + std::to_string(config.alpha) + ") leaves some of " +
                    std::to_string(workers) +
                    " workers without a sample; take a larger alpha or fewer workers");
}

BatchSampler::BatchSampler(std::vector<std::uint32_t> samples, std::uint32_t batch, std::uint64_t seed,
                           std::uint32_t worker)
    : samples_(std::move(samples)), seed_(seed), worker_(worker), batch_(batch) {
  ISTHMUS_CHECK(!samples_.empty() && batch > 0);
}

std::span<const std::uint32_t> BatchSampler::batch_indices(Step step) {
  std::uint64_t epoch = step * batch_.size() / samples_.size();
  std::size_t offset = step * batch_.size() % samples_.size();
  for (std::uint32_t& index : batch_) {
    if (epoch_ != epoch) shuffle(epoch);
    index = order_[offset];
    if (++offset == order_.size()) {
      offset = 0;
      ++epoch;
    }
  }
  return batch_;
}

void BatchSampler::shuffle(std::uint64_t epoch) {
  order_ = samples_;
  core::Random(seed_, {kShuffleStream, worker_, static_cast<std::uint32_t>(epoch)})
      .shuffle(std::span(order_));
  epoch_ = epoch;
}

}  // namespace isthmus::models
