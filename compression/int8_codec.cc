#include "compression/int8_codec.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "core/check.h"

namespace isthmus::compression {
namespace {

constexpr std::size_t kBlock = 256;
constexpr std::size_t kScaleBytes = sizeof(float);
constexpr float kMinScale = std::numeric_limits<float>::min();
constexpr float kMaxScale = std::numeric_limits<float>::max() / 128.0f;

float scale_for(float largest) {
  if (largest == 0.0f) return 0.0f;
  return std::clamp(largest / 127.0f, kMinScale, kMaxScale);
}

float load_scale(const std::byte* in) {
  float scale;
  std::memcpy(&scale, in, kScaleBytes);
  return scale;
}

}  // namespace

std::size_t Int8Codec::max_encoded_bytes(std::size_t elements) const noexcept {
  return elements + (elements / kBlock + (elements % kBlock != 0)) * kScaleBytes;
}

std::size_t Int8Codec::encode(std::span<const float> in, CodecState&, std::span<std::byte> out) const {
  static_assert(kBlock == kAlignment);
  ISTHMUS_CHECK(out.size() >= max_encoded_bytes(in.size()));
  std::byte* to = out.data();
  for (std::size_t at = 0; at < in.size(); at += kBlock) {
    const std::size_t length = std::min(kBlock, in.size() - at);
    const float scale = scale_for(kernels().max_abs(in.data() + at, length));
    std::memcpy(to, &scale, kScaleBytes);
    kernels().to_i8(in.data() + at, length, scale == 0.0f ? 0.0f : 1.0f / scale, to + kScaleBytes);
    to += kScaleBytes + length;
  }
  return static_cast<std::size_t>(to - out.data());
}

Status Int8Codec::check_values(std::span<const std::byte> in, std::size_t elements) const {
  for (std::size_t block = 0; block * kBlock < elements; ++block) {
    const float scale = load_scale(in.data() + block * (kScaleBytes + kBlock));
    // Written so that NaN fails.
    if (scale == 0.0f || (scale >= kMinScale && scale <= kMaxScale)) continue;
    return {ErrorCode::kCorruption, "int8 record: bad scale in block " + std::to_string(block)};
  }
  return {};
}

void Int8Codec::add(std::span<const std::byte> in, float weight, std::span<float> sum) const {
  const std::byte* from = in.data();
  for (std::size_t at = 0; at < sum.size(); at += kBlock) {
    const std::size_t length = std::min(kBlock, sum.size() - at);
    kernels().add_i8(from + kScaleBytes, length, load_scale(from), weight, sum.data() + at);
    from += kScaleBytes + length;
  }
}

}  // namespace isthmus::compression
