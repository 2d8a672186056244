// The values of one block of a sparse record (kept_values.h), by a block of as many threads.
//
// Threads: of the device, all of a block.  Memory: some shared.  Errors: none.

#pragma once

#include <cuda_runtime.h>

#include "compression/cuda/warp.cuh"
#include "compression/kept_values.h"
#include "compression/kernels/codes.h"

namespace isthmus::compression {

// kept_bytes() of one block.
__device__ inline unsigned kept_block_bytes(core::KeptValues values, unsigned n) {
  return values == core::KeptValues::kFp32   ? 4 * n
         : values == core::KeptValues::kFp16 ? 2 * n
                                             : n + static_cast<unsigned>(kInt8ScaleBytes);
}

// What the thread's element, one of the block's first `n`, decodes to. The others get 0.
__device__ inline float read_kept(core::KeptValues values, const std::byte* in, unsigned n) {
  float decoded = 0.0f;
  const unsigned i = threadIdx.x;
  if (i >= n) return decoded;
  float value = 0.0f;
  if (values == core::KeptValues::kFp32) {
    value = std::bit_cast<float>(load_unaligned<std::uint32_t>(in + 4 * i));
  } else if (values == core::KeptValues::kFp16) {
    value = from_half(load_unaligned<std::uint16_t>(in + 2 * i));
  } else {
    const float scale = std::bit_cast<float>(load_unaligned<std::uint32_t>(in));
    value = int8_value(static_cast<std::int8_t>(in[kInt8ScaleBytes + i]), scale);
  }
  add_decoded(value, 1.0f, decoded);
  return decoded;
}

// Writes the block's `n` values, one a thread; returns what the thread's own decodes to.
__device__ inline float write_kept(core::KeptValues values, float value, unsigned n, std::byte* out) {
  const unsigned i = threadIdx.x;
  if (values == core::KeptValues::kFp32) {
    if (i < n) store_unaligned(out + 4 * i, std::bit_cast<std::uint32_t>(value));
  } else if (values == core::KeptValues::kFp16) {
    if (i < n) store_unaligned(out + 2 * i, to_half(value));
  } else {
    const float largest =
        std::bit_cast<float>(largest_of_block<kKeptBlock>(i < n ? magnitude_bits(value) : 0));
    const float scale = int8_scale(largest);
    const float inverse = int8_inverse(scale, largest);
    if (i == 0) store_unaligned(out, std::bit_cast<std::uint32_t>(scale));
    if (i < n) out[kInt8ScaleBytes + i] = static_cast<std::byte>(quantise(value * inverse, 127));
    __syncthreads();  // Before the scale is read.
  }
  return read_kept(values, out, n);
}

}  // namespace isthmus::compression
