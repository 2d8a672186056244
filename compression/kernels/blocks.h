// What the block codecs share: block sizes, and the scale that a block gets. Every backend calls these, so
// that no backend can have a scale of its own.
//
// A scale is 0 for a block of zeros; any other is kept where its inverse and every code * scale are normal
// and finite. A block of tiny values then rounds to a coarser grid; one at the top of float's range gets the
// codes of a block that fits, and so less than its due. What is lost stays with the sender like any other
// error.
//
// Threads: any.  Memory: none.  Errors: none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "compression/kernels/by_value.h"
#include "compression/kernels/float16.h"

namespace isthmus::compression {

inline constexpr std::size_t kInt8Block = 256;
inline constexpr std::size_t kNibbleBlock = 64;  // int4, fp4
inline constexpr std::size_t kSignBlock = 512;
inline constexpr std::size_t kRotated = 1024;  // Elements that one rotation mixes.

// The scale in front of a block.
inline constexpr std::size_t kInt8ScaleBytes = 4;    // f32
inline constexpr std::size_t kNibbleScaleBytes = 2;  // bf16
inline constexpr std::size_t kSignScaleBytes = 4;    // f32

inline constexpr float kInt8MinScale = std::numeric_limits<float>::min();
inline constexpr float kInt8MaxScale = std::numeric_limits<float>::max() / 128.0f;
// 2^-120, so that a scale's 64th is normal, and 2^119, so that a rotation of 1024 codes is finite.
inline constexpr std::uint16_t kNibbleMinScale = (127 - 120) << 7;
inline constexpr std::uint16_t kNibbleMaxScale = (127 + 119) << 7;

// fp4: from this share of the scale on, 2^-7, the nearest code is not zero.
inline constexpr std::uint32_t kFp4LeastBits = (127u - 7) << 23;

// What elements are multiplied with before they are rounded to codes: no product is then beyond the `top`
// code.
constexpr float inverse_of(float scale, float largest, float top, float max_scale) noexcept {
  if (scale == 0.0f) return 0.0f;
  return scale < max_scale ? 1.0f / scale : top / largest;
}
constexpr float int8_inverse(float scale, float largest) noexcept {
  return inverse_of(scale, largest, 127.0f, kInt8MaxScale);
}
constexpr float nibble_inverse(std::uint16_t scale, float largest, float top) noexcept {
  return inverse_of(from_bf16(scale), largest, top, from_bf16(kNibbleMaxScale));
}
inline constexpr float kInt4Top = 7.0f;
inline constexpr float kFp4Top = 1.0f;

// max / 127: no element is clipped.
constexpr float int8_scale(float largest) noexcept {
  return largest == 0.0f ? 0.0f : limited(largest / 127.0f, kInt8MinScale, kInt8MaxScale);
}

// max / 7 as bf16, rounded up so that no element is clipped.
constexpr std::uint16_t int4_scale(float largest) noexcept {
  if (largest == 0.0f) return 0;
  const std::uint32_t up = (std::bit_cast<std::uint32_t>(largest / 7.0f) + 0xffffu) >> 16;
  return limited(static_cast<std::uint16_t>(up), kNibbleMinScale, kNibbleMaxScale);
}

// The largest code's value: max as the nearest bf16.
constexpr std::uint16_t fp4_scale(float largest) noexcept {
  return largest == 0.0f ? std::uint16_t{0} : limited(to_bf16(largest), kNibbleMinScale, kNibbleMaxScale);
}

// The mean magnitude of a block from the sum of |x| / 512 over its `elements`.
constexpr float sign_scale(float sum, std::size_t elements) noexcept {
  const float whole = static_cast<float>(kSignBlock) / static_cast<float>(elements);
  const float mean = smaller(sum * whole, std::numeric_limits<float>::max());
  return mean < std::numeric_limits<float>::min() ? 0.0f : mean;
}

// Sums of floats have one order on every backend: element i belongs to partial sum i % 16, and those are
// added pairwise.
inline constexpr std::size_t kSumLanes = 16;
constexpr float add_lanes(float* lanes) noexcept {
  for (std::size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// 16 random bits as a number in (0, 1).
constexpr float uniform_of(std::uint16_t random) noexcept {
  return (static_cast<float>(random) + 0.5f) * 0x1p-16f;
}

}  // namespace isthmus::compression
