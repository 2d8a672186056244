#include "server/local_slice.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/check.h"
#include "server/delay_compensation.h"

namespace isthmus::server {
namespace {

// What was contributed, where it was received: an fp32 record is the values themselves. Empty: it has to be
// decoded.
std::span<const float> values_of(const WorkerContribution& contribution) {
  const std::span<const std::byte> record = contribution.record.view;
  const bool aligned = reinterpret_cast<std::uintptr_t>(record.data()) % alignof(float) == 0;
  if (contribution.codec->id() != compression::CodecId::kFp32 || !aligned) return {};
  return {reinterpret_cast<const float*>(record.data()), record.size() / sizeof(float)};
}

// sum = or += weight * what was contributed. A lone whole one needs no zeros first.
void fold(const WorkerContribution& contribution, float weight, bool first, std::span<float> sum) {
  const compression::Codec& codec = *contribution.codec;
  const std::span<const std::byte> record = contribution.record.view;
  if (first && weight == 1.0f) {
    ISTHMUS_CHECK(codec.decode(record, sum).ok());
    return;
  }
  if (first) std::fill(sum.begin(), sum.end(), 0.0f);
  ISTHMUS_CHECK(codec.accumulate(record, weight, sum).ok());
}

}  // namespace

LocalSlice::LocalSlice(const core::Slice& slice, const Optimizer& optimizer,
                       const core::CompensationConfig* compensation)
    : slice_(slice), parameters_(slice.elements), compensation_(compensation) {
  const bool mean_squares = compensation != nullptr && compensation->adaptive;
  for (std::size_t i = 0; i < optimizer.state_vectors() + (mean_squares ? 1 : 0); ++i)
    state_.emplace_back(slice.elements);
}

bool LocalSlice::collect(Step step, std::uint32_t worker, WorkerContribution contribution) {
  if (step < committed_step_) return false;
  return collected_[step].emplace(worker, std::move(contribution)).second;
}

std::size_t LocalSlice::collected(Step step) const noexcept {
  const auto found = collected_.find(step);
  return found == collected_.end() ? 0 : found->second.size();
}

bool LocalSlice::has_collected(Step step, std::uint32_t worker) const noexcept {
  const auto found = collected_.find(step);
  return found != collected_.end() && found->second.contains(worker);
}

std::vector<Step> LocalSlice::collecting() const {
  std::vector<Step> steps;
  for (const auto& [step, contributions] : collected_) steps.push_back(step);
  return steps;
}

void LocalSlice::commit_collected(Step step, const Optimizer& optimizer, float learning_rate,
                                  std::span<float> scratch) {
  const auto found = collected_.find(step);
  ISTHMUS_CHECK(found != collected_.end());
  std::uint64_t samples = 0;
  for (const auto& [worker, contribution] : found->second) samples += contribution.samples;
  const auto contributions = std::move(found->second);
  collected_.erase(found);
  std::span<const float> mean;
  if (contributions.size() == 1 && contributions.begin()->second.scale == 1.0f)
    mean = values_of(contributions.begin()->second);
  if (mean.empty()) {
    const std::span<float> sum = scratch.first(slice_.elements);
    bool first = true;
    for (const auto& [worker, contribution] : contributions) {
      const float weight =
          static_cast<float>(static_cast<double>(contribution.scale) *
                             static_cast<double>(contribution.samples) / static_cast<double>(samples));
      fold(contribution, weight, std::exchange(first, false), sum);
    }
    mean = sum;
  }
  untold_samples_ += samples;
  skip(step);
  apply(optimizer, mean, learning_rate);
}

bool LocalSlice::is_new(std::uint32_t worker, std::uint64_t incarnation, Step step) {
  Pushed& pushed = pushed_[worker];
  if (pushed.incarnation == incarnation && step < pushed.steps) return false;
  pushed = {incarnation, step + 1};
  return true;
}

void LocalSlice::commit(std::uint32_t worker, const WorkerContribution& contribution,
                        const Optimizer& optimizer, float learning_rate, std::span<float> scratch) {
  const std::span<float> gradient = scratch.first(slice_.elements);
  fold(contribution, contribution.scale, true, gradient);
  if (const auto found = pulled_.find(worker); found != pulled_.end()) {
    compensate(*compensation_, parameters_.read(), {found->second.get(), slice_.elements},
               compensation_->adaptive ? state_.back().write() : std::span<float>(), gradient);
  }
  untold_samples_ += contribution.samples;
  apply(optimizer, gradient, learning_rate);
}

void LocalSlice::pulled_by(std::uint32_t worker) {
  if (compensation_ != nullptr) pulled_[worker] = parameters_.share();
}

void LocalSlice::apply(const Optimizer& optimizer, std::span<const float> gradient, float learning_rate) {
  std::vector<std::span<float>> state;
  for (std::size_t i = 0; i < optimizer.state_vectors(); ++i) state.push_back(state_[i].write());
  ++commits_;
  const bool finite = optimizer.apply(parameters_.write(), gradient, state, learning_rate, commits_);
  diverged_ = diverged_ || !finite;
  changed();
}

SavedSlice LocalSlice::save() const {
  SavedSlice saved{.slice = slice_.id,
                   .parameters = parameters_.share(),
                   .state = {},
                   .version = version_,
                   .commits = commits_,
                   .committed_step = committed_step_,
                   .pushed = pushed_,
                   .untold_samples = untold_samples_,
                   .anchor = {},
                   .home = {}};
  for (const core::VersionedFloats& values : state_) saved.state.push_back(values.share());
  return saved;
}

void LocalSlice::restore(const SavedSlice& saved) {
  ISTHMUS_CHECK(saved.state.size() == state_.size());
  std::copy_n(saved.parameters.get(), slice_.elements, parameters_.write().begin());
  for (std::size_t i = 0; i < state_.size(); ++i)
    std::copy_n(saved.state[i].get(), slice_.elements, state_[i].write().begin());
  version_ = saved.version;
  commits_ = saved.commits;
  committed_step_ = saved.committed_step;
  pushed_ = saved.pushed;
  untold_samples_ = saved.untold_samples;
}

core::SharedBytes LocalSlice::encoded(const compression::Codec& codec) {
  // fp32 records are the values themselves: no pass, the snapshot is sent.
  if (codec.id() == compression::CodecId::kFp32) return parameters_.share_bytes();
  if (encoded_version_ != version_ || encoded_.view.empty()) {
    core::Buffer buffer(codec.max_encoded_bytes(slice_.elements));
    compression::CodecState state{.key = slice_.id, .records = version_};
    const std::size_t bytes = codec.encode(parameters_.read(), state, buffer.writable());
    encoded_ = std::move(buffer).share(bytes);
    encoded_version_ = version_;
  }
  return encoded_;
}

}  // namespace isthmus::server
