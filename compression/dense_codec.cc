#include "compression/dense_codec.h"

#include <algorithm>
#include <string>

namespace isthmus::compression {

Status DenseCodec::check(std::span<const std::byte> in, std::size_t elements) const {
  if (const std::size_t expected = max_encoded_bytes(elements); in.size() != expected) {
    return {ErrorCode::kCorruption, "record of " + std::to_string(in.size()) + " bytes where " +
                                        std::to_string(elements) + " elements take " +
                                        std::to_string(expected)};
  }
  return check_values(in, elements);
}

Status DenseCodec::accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const {
  ISTHMUS_RETURN_IF_ERROR(check(in, sum.size()));
  add(in, weight, sum);
  return {};
}

Status DenseCodec::decode(std::span<const std::byte> in, std::span<float> out) const {
  ISTHMUS_RETURN_IF_ERROR(check(in, out.size()));
  // Zeroing and adding is what makes decode() and accumulate() agree; in pieces that stay in the L1 cache.
  constexpr std::size_t piece_elements = 16 * kAlignment;
  for (std::size_t at = 0; at < out.size(); at += piece_elements) {
    const std::span<float> piece = out.subspan(at, std::min(piece_elements, out.size() - at));
    std::fill(piece.begin(), piece.end(), 0.0f);
    add(in.subspan(max_encoded_bytes(at), max_encoded_bytes(piece.size())), 1.0f, piece);
  }
  return {};
}

}  // namespace isthmus::compression
