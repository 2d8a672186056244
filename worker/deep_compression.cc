#include "worker/deep_compression.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace isthmus::worker {

DeepCompression::DeepCompression(const core::Layout& layout, const DeepCompressionConfig& config)
    : momentum_(config.momentum),
      warmup_(config.warmup_steps),
      dense_(compression::make_codec({core::CodecKind::kFp32})),
      slices_(layout.slices().size()) {
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    const double keep = std::pow(config.keep, static_cast<double>(stage + 1) / static_cast<double>(kStages));
    sparse_[stage] = compression::make_codec({.kind = core::CodecKind::kTopk, .keep = keep});
  }
  std::uint64_t largest = 0;
  for (const core::Slice& slice : layout.slices()) {
    Memory& memory = slices_[slice.id];
    memory.whole = layout.tensors()[slice.tensor.value].elements() < config.dense_below_elements;
    memory.momentum.resize(slice.elements);
    if (!memory.whole) memory.gathered.resize(slice.elements);
    largest = std::max(largest, slice.elements);
  }
  decoded_.resize(largest);
}

ConstTensorView DeepCompression::gather(core::SliceId slice, ConstTensorView gradient) {
  Memory& memory = slices_[slice];
  ISTHMUS_CHECK(gradient.size() == memory.momentum.size());
  float* u = memory.momentum.data();
  if (memory.whole) {
    for (std::size_t i = 0; i < gradient.size(); ++i) u[i] = momentum_ * u[i] + gradient[i];
  } else {
    float* v = memory.gathered.data();
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      u[i] = momentum_ * u[i] + gradient[i];
      v[i] += u[i];
    }
  }
  std::vector<float>& told = memory.whole ? memory.momentum : memory.gathered;
  if (!compression::all_finite(told)) {
    std::copy(gradient.begin(), gradient.end(), memory.momentum.begin());
    if (!memory.whole) memory.gathered = memory.momentum;
  }
  return told;
}

const compression::Codec& DeepCompression::codec(core::SliceId slice, Step step) const {
  if (slices_[slice].whole) return *dense_;
  const Step stage = step < warmup_ ? step * (kStages - 1) / warmup_ : kStages - 1;
  return *sparse_[stage];
}

void DeepCompression::sent(core::SliceId slice, std::span<const std::byte> record) {
  Memory& memory = slices_[slice];
  if (memory.whole) return;
  const std::span<float> decoded = std::span(decoded_).first(memory.gathered.size());
  ISTHMUS_CHECK(sparse_.back()->decode(record, decoded).ok());
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    if (decoded[i] == 0.0f) continue;
    memory.gathered[i] -= decoded[i];
    memory.momentum[i] = 0.0f;
  }
}

}  // namespace isthmus::worker
