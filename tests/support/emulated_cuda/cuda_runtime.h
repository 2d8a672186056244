// A CUDA device that is this thread: what the device code of compression/cuda uses of the toolkit, for
// compiling it as C++ and running it where there is no GPU.
//
// Blocks run one after another, in order. A block's threads are contexts that take turns: one runs until it
// waits at a barrier of its warp or block. So what depends on the order of threads between barriers, on
// memory ordering or on speed is not tested by this; which bits come out is. A barrier that not all threads
// reach, and a thread that ends while others wait, abort.
//
// Threads: one may use it at a time.
// Memory:  64 KiB of stack for each thread of a block, kept.
// Errors:  memory that cannot be had; everything else succeeds or aborts.

#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated_cuda {

inline constexpr unsigned kWarpThreads = 32;

// Runs `thread` as each thread of one block. threadIdx and the others say which.
void run_block(unsigned threads, const std::function<void()>& thread);

void wait_for_block();
void wait_for_warp();

// Every lane's value of this warp, after all lanes have given theirs; valid until the next barrier.
const std::uint64_t* exchange(std::uint64_t mine);

template <typename T>
T from_lane(T value, unsigned lane) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  const std::uint64_t* all = exchange(word);
  std::memcpy(&value, &all[lane % kWarpThreads], sizeof(T));
  wait_for_warp();
  return value;
}

inline unsigned lane() { return threadIdx.x % kWarpThreads; }

}  // namespace emulated_cuda

inline void __syncthreads() { emulated_cuda::wait_for_block(); }
inline void __syncwarp(unsigned = 0xffffffffu) { emulated_cuda::wait_for_warp(); }

// All lanes take part in each of these, as in the code that uses them.
template <typename T>
T __shfl_sync(unsigned, T value, unsigned lane) {
  return emulated_cuda::from_lane(value, lane);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  return emulated_cuda::from_lane(value, emulated_cuda::lane() ^ mask);
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned distance) {
  const unsigned from = emulated_cuda::lane() + distance;
  return emulated_cuda::from_lane(value, from < 32 ? from : emulated_cuda::lane());
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned distance) {
  const unsigned lane = emulated_cuda::lane();
  return emulated_cuda::from_lane(value, lane >= distance ? lane - distance : lane);
}
inline unsigned __ballot_sync(unsigned, bool predicate) {
  const std::uint64_t* all = emulated_cuda::exchange(predicate);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(all[lane] & 1u) << lane;
  emulated_cuda::wait_for_warp();
  return bits;
}

// One thread runs at a time, so nothing comes between.
template <typename T>
T atomicExch(T* where, T value) {
  return std::exchange(*where, value);
}
template <typename T>
T atomicAdd(T* where, T value) {
  return atomicExch(where, static_cast<T>(*where + value));
}
template <typename T>
T atomicOr(T* where, T value) {
  return atomicExch(where, static_cast<T>(*where | value));
}

inline int __ffs(int bits) { return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bits)) + 1; }
inline int __popc(unsigned bits) { return std::popcount(bits); }

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorNotReady = 600 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
struct cudaDeviceProp {
  char name[256] = "emulated";
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "no error";
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  return cudaSuccess;
}

template <typename T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  *memory = static_cast<T*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *memory == nullptr && bytes > 0 ? cudaErrorMemoryAllocation : cudaSuccess;
}
template <typename T>
cudaError_t cudaMallocHost(T** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes);
}
inline cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  if (bytes > 0) std::memset(to, value, bytes);
  return cudaSuccess;
}

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1.0f;
  return cudaSuccess;
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  gridDim = config->gridDim;
  blockDim = config->blockDim;
  for (unsigned block = 0; block < gridDim.x; ++block) {
    blockIdx = dim3(block, 0, 0);
    emulated_cuda::run_block(blockDim.x, [&] { kernel(arguments...); });
  }
  return cudaSuccess;
}
