#include "compression/float_codec.h"

#include <cstring>

#include "core/check.h"

namespace isthmus::compression {

FloatCodec::FloatCodec(CodecId id, const Kernels& kernels) : DenseCodec(kernels), id_(id) {
  ISTHMUS_CHECK(id == CodecId::kFp32 || id == CodecId::kFp16 || id == CodecId::kBf16);
}

void FloatCodec::encode_piece(std::span<const float> in, const Place&, std::byte* out) const {
  if (id_ == CodecId::kFp32) {
    std::memcpy(out, in.data(), in.size_bytes());
  } else if (id_ == CodecId::kFp16) {
    kernels().to_f16(in.data(), in.size(), out);
  } else {
    kernels().to_bf16(in.data(), in.size(), out);
  }
}

Status FloatCodec::check_values(std::span<const std::byte> body, std::size_t elements) const {
  if (id_ != CodecId::kFp32 || kernels().finite_f32(body.data(), elements)) return {};
  return {ErrorCode::kCorruption, "record with a value that is not finite"};
}

void FloatCodec::add(const std::byte* in, const Place&, float weight, std::span<float> sum) const {
  const Kernels::Add kernel = id_ == CodecId::kFp32   ? kernels().add_f32
                              : id_ == CodecId::kFp16 ? kernels().add_f16
                                                      : kernels().add_bf16;
  kernel(in, sum.size(), weight, sum.data());
}

}  // namespace isthmus::compression
