#include "compression/cuda/device.h"

#include "compression/cuda/runtime.cuh"
#include "compression/cuda/warp.cuh"

namespace isthmus::compression {
namespace {

constexpr unsigned kReadThreads = 256;
constexpr std::uint64_t kReadBlocks = 8192;

__global__ void read_all(const float* in, std::uint64_t n, float* sink) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  float sum = 0.0f;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) sum += in[i];
  // Never true for what is measured, but the compiler does not know.
  if (sum == 0.12345678f) *sink = sum;
}

}  // namespace

Result<std::string> device_name() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    (void)cudaGetLastError();  // Not to be found by the next call.
    return Status(ErrorCode::kUnavailable, "there is no CUDA device");
  }
  int device = 0;
  cudaDeviceProp properties;
  ISTHMUS_RETURN_IF_ERROR(to_status(cudaGetDevice(&device), "asking for the device"));
  ISTHMUS_RETURN_IF_ERROR(to_status(cudaGetDeviceProperties(&properties, device), "asking for the device"));
  return std::string(properties.name);
}

template <MemoryPlace kPlace>
Status OwnedMemory<kPlace>::allocate(std::size_t bytes) {
  constexpr bool pinned = kPlace == MemoryPlace::kPinned;
  memory_.reset();
  bytes_ = 0;
  if (bytes == 0) return {};
  std::byte* memory = nullptr;
  const cudaError_t error = pinned ? cudaMallocHost(&memory, bytes) : cudaMalloc(&memory, bytes);
  const std::string what = std::to_string(bytes) + " bytes of " + (pinned ? "pinned" : "device") + " memory";
  ISTHMUS_RETURN_IF_ERROR(to_status(error, what.c_str()));
  memory_.reset(memory);
  bytes_ = bytes;
  return {};
}

template <MemoryPlace kPlace>
void OwnedMemory<kPlace>::Free::operator()(std::byte* memory) const noexcept {
  if (kPlace == MemoryPlace::kPinned) {
    cudaFreeHost(memory);
  } else {
    cudaFree(memory);
  }
}

template class OwnedMemory<MemoryPlace::kDevice>;
template class OwnedMemory<MemoryPlace::kPinned>;

Status OwnedStream::create() {
  cudaStream_t stream = nullptr;
  ISTHMUS_RETURN_IF_ERROR(to_status(cudaStreamCreate(&stream), "making a stream"));
  stream_.reset(stream);
  return {};
}

void OwnedStream::Destroy::operator()(DeviceStream stream) const noexcept { cudaStreamDestroy(stream); }

Status OwnedStream::synchronize() const {
  return to_status(cudaStreamSynchronize(stream_.get()), "waiting for a stream");
}

Status OwnedEvent::create() {
  cudaEvent_t event = nullptr;
  ISTHMUS_RETURN_IF_ERROR(to_status(cudaEventCreate(&event), "making an event"));
  event_.reset(event);
  return {};
}

void OwnedEvent::Destroy::operator()(DeviceEvent event) const noexcept { cudaEventDestroy(event); }

Status OwnedEvent::record(DeviceStream stream) {
  return to_status(cudaEventRecord(event_.get(), stream), "recording an event");
}

bool OwnedEvent::passed() const { return cudaEventQuery(event_.get()) != cudaErrorNotReady; }

Status OwnedEvent::synchronize() const {
  return to_status(cudaEventSynchronize(event_.get()), "waiting for the device");
}

Result<double> OwnedEvent::seconds_since(const OwnedEvent& earlier) const {
  float milliseconds = 0;
  ISTHMUS_RETURN_IF_ERROR(to_status(cudaEventElapsedTime(&milliseconds, earlier.event_.get(), event_.get()),
                                    "asking for a time"));
  return double{milliseconds} / 1000;
}

Status copy_to_device(void* to, const void* from, std::size_t bytes, DeviceStream stream) {
  return to_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copying to the device");
}

Status copy_to_host(void* to, const void* from, std::size_t bytes, DeviceStream stream) {
  return to_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream),
                   "copying from the device");
}

Status zero_on_device(void* to, std::size_t bytes, DeviceStream stream) {
  return to_status(cudaMemsetAsync(to, 0, bytes, stream), "clearing device memory");
}

Status read_on_device(std::span<const float> in, float* sink, DeviceStream stream) {
  const std::uint64_t blocks = smaller(kReadBlocks, blocks_of(in.size(), kReadThreads));
  return launch(read_all, blocks, kReadThreads, stream, in.data(), std::uint64_t{in.size()}, sink);
}

}  // namespace isthmus::compression
