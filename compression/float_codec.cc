#include "compression/float_codec.h"

#include <algorithm>

#include "core/check.h"

namespace isthmus::compression {

FloatCodec::FloatCodec(CodecId id, const Kernels& kernels)
    : DenseCodec(kernels), id_(id), width_(2), finite_(kernels.finite_f16), add_(kernels.add_f16) {
  if (id == CodecId::kFp32) {
    width_ = 4;
    finite_ = kernels.finite_f32;
    add_ = kernels.add_f32;
  } else if (id == CodecId::kBf16) {
    finite_ = kernels.finite_bf16;
    add_ = kernels.add_bf16;
  } else {
    ISTHMUS_CHECK(id == CodecId::kFp16);
  }
}

std::size_t FloatCodec::encode(std::span<const float> in, CodecState&, std::span<std::byte> out) const {
  const std::size_t bytes = max_encoded_bytes(in.size());
  ISTHMUS_CHECK(out.size() >= bytes);
  if (id_ == CodecId::kFp32) {
    const auto source = std::as_bytes(in);
    std::copy(source.begin(), source.end(), out.begin());
  } else if (id_ == CodecId::kFp16) {
    kernels().to_f16(in.data(), in.size(), out.data());
  } else {
    kernels().to_bf16(in.data(), in.size(), out.data());
  }
  return bytes;
}

Status FloatCodec::check_values(std::span<const std::byte> in, std::size_t elements) const {
  if (finite_(in.data(), elements)) return {};
  return {ErrorCode::kCorruption, "record with a value that is not finite"};
}

void FloatCodec::add(std::span<const std::byte> in, float weight, std::span<float> sum) const {
  add_(in.data(), sum.size(), weight, sum.data());
}

}  // namespace isthmus::compression
