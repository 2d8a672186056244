// What all tiles before one add up to, in a single pass over them: decoupled look-back (Merrill and Garland,
// "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016).
//
// A tile tells its own sum as soon as it knows it, and that of all up to it once it knows that; who comes
// later adds up what it finds. Tiles are handed out in order, so what one waits for is at work already.
//
// Threads: of the device.
// Memory:  look_back_words() words of the device, zero at the start of a pass.
// Errors:  none.

#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "compression/cuda/warp.cuh"

namespace isthmus::compression {

// What CUDA's atomics take.
using DeviceWord = unsigned long long;

// A word: two flags over a sum of 62 bits.
inline constexpr DeviceWord kSumOfOne = DeviceWord{1} << 62;
inline constexpr DeviceWord kSumOfAll = DeviceWord{1} << 63;
inline constexpr DeviceWord kSumBits = kSumOfOne - 1;

// The first is the counter of tiles.
constexpr std::size_t look_back_words(std::uint64_t tiles) { return static_cast<std::size_t>(tiles) + 1; }

// The next tile, for the whole block.
__device__ inline unsigned take_tile(DeviceWord* words) {
  __shared__ unsigned tile;
  if (threadIdx.x == 0) tile = static_cast<unsigned>(atomicAdd(&words[0], DeviceWord{1}));
  __syncthreads();
  const unsigned taken = tile;
  __syncthreads();
  return taken;
}

// The sum over the tiles before `tile`, whose own is `mine`; for the whole block.
__device__ inline DeviceWord look_back(DeviceWord* words, unsigned tile, DeviceWord mine) {
  __shared__ DeviceWord sum_before;
  if (warp_of_block() == 0) {
    DeviceWord* const sums = words + 1;
    DeviceWord before = 0;
    if (tile > 0) {
      if (lane_of_warp() == 0) atomicExch(&sums[tile], kSumOfOne | mine);
      for (std::int64_t last = std::int64_t{tile} - 1;; last -= kWarp) {
        const std::int64_t other = last - lane_of_warp();
        DeviceWord word = kSumOfAll;  // Before the first one there is nothing.
        if (other >= 0) {
          const volatile DeviceWord* const where = &sums[other];
          do word = *where;
          while (word == 0);
        }
        const unsigned complete = __ballot_sync(kAllLanes, (word & kSumOfAll) != 0);
        const unsigned nearest =
            complete == 0 ? kWarp : static_cast<unsigned>(__ffs(static_cast<int>(complete)) - 1);
        before += sum_of_warp(lane_of_warp() <= nearest ? word & kSumBits : DeviceWord{0});
        if (complete != 0) break;
      }
    }
    if (lane_of_warp() == 0) {
      atomicExch(&sums[tile], kSumOfAll | (before + mine));
      sum_before = before;
    }
  }
  __syncthreads();
  const DeviceWord before = sum_before;
  __syncthreads();
  return before;
}

}  // namespace isthmus::compression
