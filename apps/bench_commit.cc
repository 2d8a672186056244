#include "apps/bench_commit.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace isthmus::apps {
namespace {

constexpr std::size_t kSlices = 64;
constexpr std::size_t kElements = 256 * 1024;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void add_to(const float* __restrict gradient, float* __restrict a, float* __restrict b, float* __restrict c) {
  for (std::size_t i = 0; i < kElements; ++i) {
    a[i] += gradient[i];
    b[i] += gradient[i];
    c[i] += gradient[i];
  }
}

}  // namespace

CommitBench::CommitBench()
    : optimizer_(server::make_optimizer({.kind = core::OptimizerKind::kAdam})),
      codec_(compression::make_codec(core::CodecConfig{core::CodecKind::kFp32})),
      scratch_(kElements) {
  const std::vector<float> gradient(kElements, 1e-3f);
  for (std::uint32_t i = 0; i < kSlices; ++i) {
    core::Buffer buffer(kElements * sizeof(float));
    compression::CodecState state;
    const std::size_t bytes = codec_->encode(gradient, state, buffer.writable());
    records_.push_back(std::move(buffer).share(bytes));
    slices_.push_back(std::make_unique<server::LocalSlice>(core::Slice{i, {i}, 0, kElements}, *optimizer_));
  }
  for (int i = 0; i < 3; ++i) arrays_.emplace_back(kSlices * kElements);
}

double CommitBench::commit() {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kSlices; ++i) {
    server::LocalSlice& slice = *slices_[i];
    slice.collect(step_, 0, {.samples = 64, .codec = codec_.get(), .record = records_[i]});
    slice.commit_collected(step_, *optimizer_, 1e-3f, scratch_);
  }
  ++step_;
  return seconds_since(start);
}

double CommitBench::touch() {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kSlices; ++i) {
    const auto part = [&](int array) { return arrays_[array].span().data() + i * kElements; };
    add_to(reinterpret_cast<const float*>(records_[i].view.data()), part(0), part(1), part(2));
  }
  return seconds_since(start);
}

}  // namespace isthmus::apps
