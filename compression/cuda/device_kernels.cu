#include "compression/cuda/device_kernels.h"

#include "compression/cuda/runtime.cuh"
#include "compression/kernels/codes.h"

namespace isthmus::compression {
namespace {

constexpr unsigned kLookThreads = 256;
constexpr std::uint64_t kLookBlocks = 4096;

__global__ void look(const float* values, const float* view, std::uint64_t n, EncodeOutcome* outcome) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  bool finite = true;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    finite = is_finite(values[i] - view[i]) && finite;
  if (!finite) outcome->refused = 1;
}

}  // namespace

Status look_for_infinities(const Change& change, EncodeOutcome* outcome, DeviceStream stream) {
  if (!change.is_difference()) return {};
  const std::uint64_t n = change.size();
  return launch(look, smaller(kLookBlocks, blocks_of(n, kLookThreads)), kLookThreads, stream,
                change.values.data(), change.view.data(), n, outcome);
}

Status copy_device_view(const Change& change, DeviceStream stream) {
  if (change.moved.empty() || change.moves_view()) return {};
  return to_status(cudaMemcpyAsync(change.moved.data(), change.view.data(), change.view.size_bytes(),
                                   cudaMemcpyDeviceToDevice, stream),
                   "copying a view");
}

Status zero_sum(const AddJob& job) {
  if (!job.set) return {};
  return to_status(cudaMemsetAsync(job.sum.data(), 0, job.sum.size_bytes(), job.stream), "clearing a sum");
}

std::unique_ptr<const DeviceKernels> make_device_kernels(const core::CodecConfig& config) {
  switch (config.kind) {
    case core::CodecKind::kTopk: return make_topk_kernels(config);
    case core::CodecKind::kRandk: return make_randk_kernels(config);
    default: return make_dense_kernels(config);
  }
}

}  // namespace isthmus::compression
