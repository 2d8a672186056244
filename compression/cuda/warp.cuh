// What threads of a warp or block do together. All of them call each of these.
//
// Threads: of the device.  Memory: some shared.  Errors: none.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "compression/kernels/by_value.h"
#include "compression/random_numbers.h"

namespace isthmus::compression {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

__device__ inline unsigned lane_of_warp() { return threadIdx.x % kWarp; }
__device__ inline unsigned warp_of_block() { return threadIdx.x / kWarp; }

__device__ inline unsigned largest_of_warp(unsigned value) {
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2)
    value = larger(value, __shfl_xor_sync(kAllLanes, value, mask));
  return value;
}

template <typename T>
__device__ T sum_of_warp(T value) {
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(kAllLanes, value, mask);
  return value;
}

template <unsigned kThreads>
__device__ unsigned largest_of_block(unsigned value) {
  __shared__ unsigned of_warps[kThreads / kWarp];
  value = largest_of_warp(value);
  if (lane_of_warp() == 0) of_warps[warp_of_block()] = value;
  __syncthreads();
  value = 0;
  for (unsigned warp = 0; warp < kThreads / kWarp; ++warp) value = larger(value, of_warps[warp]);
  __syncthreads();
  return value;
}

// The sum over the threads before this one; `total` becomes that over all.
template <unsigned kThreads, typename T>
__device__ T exclusive_sum_of_block(T value, T& total) {
  __shared__ T of_warps[kThreads / kWarp];
  T inclusive = value;
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const T before = __shfl_up_sync(kAllLanes, inclusive, distance);
    if (lane_of_warp() >= distance) inclusive += before;
  }
  if (lane_of_warp() == kWarp - 1) of_warps[warp_of_block()] = inclusive;
  __syncthreads();
  T before = 0;
  total = 0;
  for (unsigned warp = 0; warp < kThreads / kWarp; ++warp) {
    if (warp < warp_of_block()) before += of_warps[warp];
    total += of_warps[warp];
  }
  __syncthreads();
  return before + inclusive - value;
}

template <typename T>
__device__ T load_unaligned(const std::byte* in) {
  T value{};
  for (unsigned i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(in[i]) << (8 * i));
  return value;
}

template <typename T>
__device__ void store_unaligned(std::byte* out, T value) {
  for (unsigned i = 0; i < sizeof(T); ++i) out[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

__device__ inline void write_numbers(const RandomNumbers& numbers, std::byte* out) {
  store_unaligned(out, numbers.key);
  store_unaligned(out + sizeof(numbers.key), numbers.record);
}

}  // namespace isthmus::compression
