#include "compression/int4_codec.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "compression/kernels/blocks.h"

namespace isthmus::compression {
namespace {

// 1 / sqrt(1024): with it the transform keeps lengths and is its own inverse. A power of two, so exact.
constexpr float kNorm = 0x1p-5f;
// 1024 of them, scaled by the norm, do not overflow; neither do 1024 codes of the largest scale.
constexpr float kLargestRotated = 0x1p117f;

// The signs of 1024 elements: bit i % 32 of word i / 32 of eight blocks of the use kRotation.
using Signs = std::uint32_t[kRotated / 32];

void draw_signs(const Kernels& kernels, const RandomNumbers& numbers, std::size_t first, Signs& signs) {
  constexpr std::size_t blocks = kRotated / 128;
  kernels.philox(numbers.counter(RandomUse::kRotation, first / kRotated * blocks), numbers.philox_key(),
                 blocks, signs);
}

}  // namespace

std::size_t nibble_body_bytes(std::size_t elements) noexcept {
  const std::size_t blocks = elements / kNibbleBlock + (elements % kNibbleBlock != 0);
  return blocks * kNibbleScaleBytes + elements / 2 + elements % 2;
}

Status check_nibble_scales(std::span<const std::byte> body, std::size_t elements) {
  for (std::size_t block = 0; block * kNibbleBlock < elements; ++block) {
    std::uint16_t scale;
    std::memcpy(&scale, body.data() + block * (kNibbleScaleBytes + kNibbleBlock / 2), sizeof(scale));
    if (scale == 0 || (scale >= kNibbleMinScale && scale <= kNibbleMaxScale)) continue;
    return {ErrorCode::kCorruption, "bad scale in block " + std::to_string(block)};
  }
  return {};
}

std::size_t Int4Codec::body_bytes(std::size_t elements) const noexcept { return nibble_body_bytes(elements); }

void Int4Codec::encode_piece(std::span<const float> in, const Place& place, std::byte* out) const {
  std::uint16_t random[kPiece];
  const bool stochastic = rounding_ == core::Rounding::kStochastic;
  if (stochastic) draw_rounding(in.size(), place, random);
  alignas(64) float rotated[kPiece];
  if (rotate_) {
    const std::size_t mixed = in.size() / kRotated * kRotated;
    for (std::size_t at = 0; at < mixed; at += kRotated) {
      Signs signs;
      draw_signs(kernels(), place.numbers, place.first + at, signs);
      kernels().flip(in.data() + at, signs, kRotated, kLargestRotated, kNorm, rotated + at);
      kernels().hadamard(rotated + at);
    }
    std::copy(in.begin() + static_cast<std::ptrdiff_t>(mixed), in.end(), rotated + mixed);
    in = {rotated, in.size()};
  }
  kernels().encode_i4(in.data(), in.size(), stochastic ? random : nullptr, out);
}

Status Int4Codec::check_values(std::span<const std::byte> body, std::size_t elements) const {
  return check_nibble_scales(body, elements);
}

void Int4Codec::add(const std::byte* in, const Place& place, float weight, std::span<float> sum) const {
  const std::size_t mixed = rotate_ ? sum.size() / kRotated * kRotated : 0;
  for (std::size_t at = 0; at < mixed; at += kRotated) {
    alignas(64) float values[kRotated] = {};
    kernels().add_i4(in, kRotated, kNorm, values);
    kernels().hadamard(values);
    Signs signs;
    draw_signs(kernels(), place.numbers, place.first + at, signs);
    kernels().flip(values, signs, kRotated, std::numeric_limits<float>::max(), 1.0f, values);
    kernels().add_f32(reinterpret_cast<const std::byte*>(values), kRotated, weight, sum.data() + at);
    in += nibble_body_bytes(kRotated);
  }
  kernels().add_i4(in, sum.size() - mixed, weight, sum.data() + mixed);
}

}  // namespace isthmus::compression
