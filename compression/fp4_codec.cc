#include "compression/fp4_codec.h"

#include "compression/int4_codec.h"

namespace isthmus::compression {

std::size_t Fp4Codec::body_bytes(std::size_t elements) const noexcept { return nibble_body_bytes(elements); }

void Fp4Codec::encode_piece(std::span<const float> in, const Place&, std::byte* out) const {
  kernels().encode_fp4(in.data(), in.size(), nullptr, out);
}

Status Fp4Codec::check_values(std::span<const std::byte> body, std::size_t elements) const {
  return check_nibble_scales(body, elements);
}

void Fp4Codec::add(const std::byte* in, const Place&, float weight, std::span<float> sum) const {
  kernels().add_fp4(in, sum.size(), weight, sum.data());
}

}  // namespace isthmus::compression
