#include "compression/sign_codec.h"

#include <cstring>
#include <limits>
#include <string>

#include "compression/kernels/blocks.h"

namespace isthmus::compression {

std::size_t SignCodec::body_bytes(std::size_t elements) const noexcept {
  const std::size_t blocks = elements / kSignBlock + (elements % kSignBlock != 0);
  return blocks * kSignScaleBytes + elements / 8 + (elements % 8 != 0);
}

void SignCodec::encode_piece(std::span<const float> in, const Place&, std::byte* out) const {
  kernels().encode_sign(in.data(), in.size(), nullptr, out);
}

Status SignCodec::check_values(std::span<const std::byte> body, std::size_t elements) const {
  using Limits = std::numeric_limits<float>;
  for (std::size_t block = 0; block * kSignBlock < elements; ++block) {
    float scale;
    std::memcpy(&scale, body.data() + block * (kSignScaleBytes + kSignBlock / 8), sizeof(scale));
    // Written so that NaN fails.
    if (scale == 0.0f || (scale >= Limits::min() && scale <= Limits::max())) continue;
    return {ErrorCode::kCorruption, "sign record: bad scale in block " + std::to_string(block)};
  }
  return {};
}

void SignCodec::add(const std::byte* in, const Place&, float weight, std::span<float> sum) const {
  kernels().add_sign(in, sum.size(), weight, sum.data());
}

}  // namespace isthmus::compression
