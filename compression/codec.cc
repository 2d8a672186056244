#include "compression/codec.h"

#include <string>

#include "compression/float_codec.h"
#include "compression/fp4_codec.h"
#include "compression/int4_codec.h"
#include "compression/int8_codec.h"
#include "compression/randk_codec.h"
#include "compression/sign_codec.h"
#include "compression/topk_codec.h"
#include "core/check.h"

namespace isthmus::compression {

std::size_t Codec::encode(std::span<const float> in, CodecState& state, std::span<std::byte> out) const {
  ISTHMUS_CHECK(out.size() >= max_encoded_bytes(in.size()));
  const Result<std::size_t> bytes = encode_change({.values = in}, state, out);
  ISTHMUS_CHECK(bytes.ok());
  return *bytes;
}

Result<std::size_t> Codec::encode_delta(std::span<const float> parameters, std::span<const float> view,
                                        std::span<float> moved, CodecState& state,
                                        std::span<std::byte> out) const {
  ISTHMUS_CHECK(view.size() == parameters.size() && (moved.empty() || moved.size() == view.size()));
  ISTHMUS_CHECK(out.size() >= max_encoded_bytes(parameters.size()));
  return encode_change({.values = parameters, .view = view, .moved = moved}, state, out);
}

std::unique_ptr<const Codec> make_codec(const core::CodecConfig& config) {
  return make_codec(config, best_kernels());
}

std::unique_ptr<const Codec> make_codec(const core::CodecConfig& config, const Kernels& kernels) {
  using core::CodecKind;
  switch (config.kind) {
    case CodecKind::kFp32: break;
    case CodecKind::kFp16: return std::make_unique<FloatCodec>(CodecId::kFp16, kernels);
    case CodecKind::kBf16: return std::make_unique<FloatCodec>(CodecId::kBf16, kernels);
    case CodecKind::kInt8: return std::make_unique<Int8Codec>(kernels, config.rounding);
    case CodecKind::kInt4: return std::make_unique<Int4Codec>(kernels, config.rotate, config.rounding);
    case CodecKind::kFp4: return std::make_unique<Fp4Codec>(kernels);
    case CodecKind::kSign: return std::make_unique<SignCodec>(kernels);
    case CodecKind::kTopk: return std::make_unique<TopkCodec>(config.keep, config.values, kernels);
    case CodecKind::kRandk: return std::make_unique<RandkCodec>(config.keep, config.values, kernels);
  }
  return std::make_unique<FloatCodec>(CodecId::kFp32, kernels);
}

Result<const Codec*> find_decoder(std::uint8_t id) {
  const Kernels& best = best_kernels();
  static const FloatCodec fp32(CodecId::kFp32, best), fp16(CodecId::kFp16, best), bf16(CodecId::kBf16, best);
  static const Int8Codec int8(best);
  static const Int4Codec int4(best), rotated_int4(best, true);
  static const Fp4Codec fp4(best);
  static const SignCodec sign(best);
  static const TopkCodec topk(1.0, core::KeptValues::kFp32, best);
  static const RandkCodec randk(1.0, core::KeptValues::kFp32, best);
  static const Codec* const all[] = {&fp32,         &fp16, &bf16, &int8, &int4,
                                     &rotated_int4, &fp4,  &sign, &topk, &randk};
  for (const Codec* codec : all) {
    if (static_cast<std::uint8_t>(codec->id()) == id) return codec;
  }
  return Status(ErrorCode::kProtocol, "unknown codec " + std::to_string(id));
}

bool all_finite(std::span<const float> in) noexcept {
  return best_kernels().finite_f32(std::as_bytes(in).data(), in.size());
}

Status not_finite() { return {ErrorCode::kInvalidArgument, "the change is not finite"}; }

}  // namespace isthmus::compression
