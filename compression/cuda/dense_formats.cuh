// The dense codecs' blocks, each encoded and decoded by a warp.
//
// A format has kElements a block, 32 for each of its rows: lane l holds element 32 r + l in row r. encode()
// writes the block and leaves in the rows what it decodes to; what is past `length` is zero before and
// anything after. `random` holds 16 bits for each element, or is nullptr: to nearest.
//
// Threads: of the device, a whole warp at a time.  Memory: some shared.  Errors: none.

#pragma once

#include <cuda_runtime.h>

#include "compression/codec.h"
#include "compression/cuda/warp.cuh"
#include "compression/kernels/codes.h"

namespace isthmus::compression {

inline constexpr unsigned kDenseThreads = 128;
inline constexpr unsigned kDenseWarps = kDenseThreads / kWarp;

template <unsigned kElements>
using Rows = float[kElements / kWarp];

template <unsigned kElements>
__device__ float largest_magnitude(const Rows<kElements>& rows) {
  unsigned largest = 0;
  for (const float value : rows) largest = larger(largest, magnitude_bits(value));
  return std::bit_cast<float>(largest_of_warp(largest));
}

__device__ inline std::uint16_t random_of(const std::uint32_t* random, unsigned element) {
  return static_cast<std::uint16_t>(random[element / 2] >> (element % 2 * 16));
}

__device__ inline int quantise_with(float scaled, int limit, const std::uint32_t* random, unsigned element) {
  return random == nullptr ? quantise(scaled, limit) : quantise(scaled, limit, random_of(random, element));
}

// fp32, fp16, bf16: no scale, so a block is what a warp takes at a time.
template <CodecId kId>
struct FloatFormat {
  static constexpr unsigned kElements = 256;
  static constexpr unsigned kBytesEach = kId == CodecId::kFp32 ? 4 : 2;
  static constexpr unsigned bytes(unsigned length) { return length * kBytesEach; }

  __device__ static void encode(Rows<kElements>& rows, unsigned length, const std::uint32_t*,
                                std::byte* out) {
    for (unsigned r = 0; r < kElements / kWarp; ++r) {
      const unsigned i = r * kWarp + lane_of_warp();
      if (i >= length) continue;
      if constexpr (kId == CodecId::kFp32) {
        reinterpret_cast<float*>(out)[i] = rows[r];
      } else {
        const std::uint16_t narrow = kId == CodecId::kFp16 ? to_half(rows[r]) : to_bf16(rows[r]);
        reinterpret_cast<std::uint16_t*>(out)[i] = narrow;
        rows[r] = wide(narrow);
      }
    }
  }

  __device__ static void decode(const std::byte* in, unsigned length, Rows<kElements>& rows) {
    for (unsigned r = 0; r < kElements / kWarp; ++r) {
      const unsigned i = r * kWarp + lane_of_warp();
      if (i >= length) continue;
      if constexpr (kId == CodecId::kFp32) {
        rows[r] = reinterpret_cast<const float*>(in)[i];
      } else {
        rows[r] = wide(reinterpret_cast<const std::uint16_t*>(in)[i]);
      }
    }
  }

 private:
  __device__ static float wide(std::uint16_t narrow) {
    return kId == CodecId::kFp16 ? from_half(narrow) : from_bf16(narrow);
  }
};

struct Int8Format {
  static constexpr unsigned kElements = kInt8Block;
  static constexpr unsigned bytes(unsigned length) { return length + kInt8ScaleBytes; }

  __device__ static void encode(Rows<kElements>& rows, unsigned length, const std::uint32_t* random,
                                std::byte* out) {
    const float largest = largest_magnitude<kElements>(rows);
    const float scale = int8_scale(largest);
    const float inverse = int8_inverse(scale, largest);
    if (lane_of_warp() == 0) *reinterpret_cast<float*>(out) = scale;
    for (unsigned r = 0; r < kElements / kWarp; ++r) {
      const unsigned i = r * kWarp + lane_of_warp();
      if (i >= length) continue;
      const auto code = static_cast<std::int8_t>(quantise_with(rows[r] * inverse, 127, random, i));
      out[kInt8ScaleBytes + i] = static_cast<std::byte>(code);
      rows[r] = int8_value(code, scale);
    }
  }

  __device__ static void decode(const std::byte* in, unsigned length, Rows<kElements>& rows) {
    const float scale = *reinterpret_cast<const float*>(in);
    for (unsigned r = 0; r < kElements / kWarp; ++r) {
      const unsigned i = r * kWarp + lane_of_warp();
      if (i < length) rows[r] = int8_value(static_cast<std::int8_t>(in[kInt8ScaleBytes + i]), scale);
    }
  }
};

struct Int4Nibble {
  static constexpr float kTop = kInt4Top;
  __device__ static std::uint16_t scale(float largest) { return int4_scale(largest); }
  __device__ static unsigned code(float scaled, const std::uint32_t* random, unsigned element) {
    return static_cast<unsigned>(quantise_with(scaled, 7, random, element)) & 15u;
  }
  __device__ static float value(unsigned code, float scale) { return int4_value(code, scale); }
};

struct Fp4Nibble {
  static constexpr float kTop = kFp4Top;
  __device__ static std::uint16_t scale(float largest) { return fp4_scale(largest); }
  __device__ static unsigned code(float scaled, const std::uint32_t*, unsigned) { return fp4_code(scaled); }
  __device__ static float value(unsigned code, float scale) { return fp4_value(code, scale); }
};

template <typename Nibble>
struct NibbleFormat {
  static constexpr unsigned kElements = kNibbleBlock;
  static constexpr unsigned bytes(unsigned length) { return kNibbleScaleBytes + (length + 1) / 2; }

  __device__ static void encode(Rows<kElements>& rows, unsigned length, const std::uint32_t* random,
                                std::byte* out) {
    __shared__ std::uint8_t of_warps[kDenseWarps][kElements];
    std::uint8_t* const codes = of_warps[warp_of_block()];
    const float largest = largest_magnitude<kElements>(rows);
    const std::uint16_t scale = Nibble::scale(largest);
    const float inverse = nibble_inverse(scale, largest, Nibble::kTop);
    for (unsigned r = 0; r < kElements / kWarp; ++r) {
      const unsigned i = r * kWarp + lane_of_warp();
      const unsigned code = i < length ? Nibble::code(rows[r] * inverse, random, i) : 0;
      codes[i] = static_cast<std::uint8_t>(code);
      rows[r] = Nibble::value(code, from_bf16(scale));
    }
    __syncwarp();
    const unsigned half = (length + 1) / 2;
    if (lane_of_warp() == 0) *reinterpret_cast<std::uint16_t*>(out) = scale;
    // half <= 32; beyond `length` the codes are 0.
    if (const unsigned i = lane_of_warp(); i < half) {
      const unsigned high = i + half < kElements ? codes[i + half] : 0;
      out[kNibbleScaleBytes + i] = static_cast<std::byte>(codes[i] | high << 4);
    }
    __syncwarp();
  }

  __device__ static void decode(const std::byte* in, unsigned length, Rows<kElements>& rows) {
    const float scale = from_bf16(*reinterpret_cast<const std::uint16_t*>(in));
    const unsigned half = (length + 1) / 2;
    for (unsigned r = 0; r < kElements / kWarp; ++r) {
      const unsigned i = r * kWarp + lane_of_warp();
      if (i >= length) continue;
      const auto codes = static_cast<unsigned>(in[kNibbleScaleBytes + (i < half ? i : i - half)]);
      rows[r] = Nibble::value(i < half ? codes & 15u : codes >> 4, scale);
    }
  }
};

struct SignFormat {
  static constexpr unsigned kElements = kSignBlock;
  static constexpr unsigned bytes(unsigned length) { return kSignScaleBytes + (length + 7) / 8; }

  __device__ static void encode(Rows<kElements>& rows, unsigned length, const std::uint32_t*,
                                std::byte* out) {
    // The order of the sum is part of the record: element i goes to partial sum i % 16, one after another.
    float sum = 0.0f;
    for (const float value : rows) {
      const float part = sign_part(value);
      sum += part;
      sum += __shfl_down_sync(kAllLanes, part, kSumLanes);
    }
    for (unsigned half = kSumLanes / 2; half > 0; half /= 2) sum += __shfl_down_sync(kAllLanes, sum, half);
    const float scale = sign_scale(__shfl_sync(kAllLanes, sum, 0), length);
    if (lane_of_warp() == 0) *reinterpret_cast<float*>(out) = scale;
    for (unsigned r = 0; r < kElements / kWarp; ++r) {
      const bool negative = rows[r] < 0.0f;
      const unsigned bits = __ballot_sync(kAllLanes, negative);
      const unsigned at = r * 4 + lane_of_warp();
      if (lane_of_warp() < 4 && at < (length + 7) / 8)
        out[kSignScaleBytes + at] = static_cast<std::byte>(bits >> (8 * lane_of_warp()) & 0xffu);
      rows[r] = sign_value(negative, scale);
    }
  }

  __device__ static void decode(const std::byte* in, unsigned length, Rows<kElements>& rows) {
    const float scale = *reinterpret_cast<const float*>(in);
    for (unsigned r = 0; r < kElements / kWarp; ++r) {
      const unsigned i = r * kWarp + lane_of_warp();
      if (i >= length) continue;
      const auto bits = static_cast<unsigned>(in[kSignScaleBytes + i / 8]);
      rows[r] = sign_value((bits >> (i % 8) & 1u) != 0, scale);
    }
  }
};

}  // namespace isthmus::compression
