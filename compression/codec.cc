#include "compression/codec.h"

#include <string>

#include "compression/float_codec.h"
#include "compression/int8_codec.h"
#include "compression/topk_codec.h"

namespace isthmus::compression {

std::unique_ptr<const Codec> make_codec(const core::CodecConfig& config) {
  return make_codec(config, best_kernels());
}

std::unique_ptr<const Codec> make_codec(const core::CodecConfig& config, const Kernels& kernels) {
  using core::CodecKind;
  switch (config.kind) {
    case CodecKind::kFp32: break;
    case CodecKind::kFp16: return std::make_unique<FloatCodec>(CodecId::kFp16, kernels);
    case CodecKind::kBf16: return std::make_unique<FloatCodec>(CodecId::kBf16, kernels);
    case CodecKind::kInt8: return std::make_unique<Int8Codec>(kernels);
    case CodecKind::kTopk: return std::make_unique<TopkCodec>(config.keep, kernels);
  }
  return std::make_unique<FloatCodec>(CodecId::kFp32, kernels);
}

Result<const Codec*> find_decoder(std::uint8_t id) {
  static const FloatCodec fp32(CodecId::kFp32, best_kernels());
  static const FloatCodec fp16(CodecId::kFp16, best_kernels());
  static const FloatCodec bf16(CodecId::kBf16, best_kernels());
  static const Int8Codec int8(best_kernels());
  static const TopkCodec topk(1.0, best_kernels());
  for (const Codec* codec :
       {static_cast<const Codec*>(&fp32), static_cast<const Codec*>(&fp16), static_cast<const Codec*>(&bf16),
        static_cast<const Codec*>(&int8), static_cast<const Codec*>(&topk)}) {
    if (static_cast<std::uint8_t>(codec->id()) == id) return codec;
  }
  return Status(ErrorCode::kProtocol, "unknown codec " + std::to_string(id));
}

bool all_finite(std::span<const float> in) noexcept {
  return best_kernels().finite_f32(std::as_bytes(in).data(), in.size());
}

}  // namespace isthmus::compression
