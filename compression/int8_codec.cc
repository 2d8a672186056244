#include "compression/int8_codec.h"

#include <cstring>
#include <string>

#include "compression/kernels/blocks.h"

namespace isthmus::compression {
namespace {

static_assert(sizeof(float) == kInt8ScaleBytes);

}  // namespace

bool is_int8_scale(const std::byte* in) noexcept {
  float scale;
  std::memcpy(&scale, in, kInt8ScaleBytes);
  // Written so that NaN fails.
  return scale == 0.0f || (scale >= kInt8MinScale && scale <= kInt8MaxScale);
}

std::size_t Int8Codec::body_bytes(std::size_t elements) const noexcept {
  return elements + (elements / kInt8Block + (elements % kInt8Block != 0)) * kInt8ScaleBytes;
}

void Int8Codec::encode_piece(std::span<const float> in, const Place& place, std::byte* out) const {
  std::uint16_t random[kPiece];
  const bool stochastic = rounding_ == core::Rounding::kStochastic;
  if (stochastic) draw_rounding(in.size(), place, random);
  kernels().encode_i8(in.data(), in.size(), stochastic ? random : nullptr, out);
}

Status Int8Codec::check_values(std::span<const std::byte> body, std::size_t elements) const {
  for (std::size_t block = 0; block * kInt8Block < elements; ++block) {
    if (is_int8_scale(body.data() + block * (kInt8ScaleBytes + kInt8Block))) continue;
    return {ErrorCode::kCorruption, "int8 record: bad scale in block " + std::to_string(block)};
  }
  return {};
}

void Int8Codec::add(const std::byte* in, const Place&, float weight, std::span<float> sum) const {
  kernels().add_i8(in, sum.size(), weight, sum.data());
}

}  // namespace isthmus::compression
