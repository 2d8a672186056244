#include "compression/dense_codec.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace isthmus::compression {
namespace {

// A record as large as this is written past the caches: it would only push out what is still needed.
constexpr std::size_t kStreamedBytes = 4 << 20;

}  // namespace

RandomNumbers DenseCodec::numbers_in(std::span<const std::byte> in) const {
  return header_bytes_ == 0 ? RandomNumbers{} : RandomNumbers::read(in.data());
}

void DenseCodec::draw_rounding(std::size_t n, const Place& place, std::uint16_t (&random)[kPiece]) const {
  constexpr std::size_t per_block = 8;
  std::uint32_t words[kPiece / 2];
  kernels_.philox(place.numbers.counter(RandomUse::kRounding, place.first / per_block),
                  place.numbers.philox_key(), (n + per_block - 1) / per_block, words);
  std::memcpy(random, words, n * sizeof(std::uint16_t));
}

Result<std::size_t> DenseCodec::encode_change(const Change& change, CodecState& state,
                                              std::span<std::byte> out) const {
  // Once a part of the view has moved it cannot be brought back.
  if (change.moves_view() && !is_finite(change, kernels_)) return not_finite();
  const RandomNumbers numbers = RandomNumbers::of(state);
  if (header_bytes_ > 0) numbers.write(out.data());
  const std::size_t bytes = max_encoded_bytes(change.size());
  const bool streamed = bytes >= kStreamedBytes;
  alignas(64) float difference[kPiece];
  alignas(64) std::byte staged[kPiece * sizeof(float)];  // No codec makes more of an element.
  std::byte* to = out.data() + header_bytes_;
  for (std::size_t at = 0; at < change.size(); at += kPiece) {
    const std::size_t n = std::min(kPiece, change.size() - at);
    std::span<const float> piece = change.values.subspan(at, n);
    if (change.is_difference()) {
      if (!kernels_.subtract(piece.data(), change.view.data() + at, n, difference)) return not_finite();
      piece = {difference, n};
    }
    std::byte* const body = streamed ? staged : to;
    encode_piece(piece, {at, numbers}, body);
    if (streamed) kernels_.stream(body, body_bytes(n), to);
    if (!change.moved.empty()) {
      const std::span<float> moved = change.moved.subspan(at, n);
      if (!change.moves_view()) std::copy_n(change.view.data() + at, n, moved.data());
      add(body, {at, numbers}, 1.0f, moved);
    }
    to += body_bytes(n);
  }
  if (streamed) kernels_.finish_streaming();
  ++state.records;
  return bytes;
}

Status DenseCodec::check(std::span<const std::byte> in, std::size_t elements) const {
  if (const std::size_t expected = max_encoded_bytes(elements); in.size() != expected) {
    return {ErrorCode::kCorruption, "record of " + std::to_string(in.size()) + " bytes where " +
                                        std::to_string(elements) + " elements take " +
                                        std::to_string(expected)};
  }
  return check_values(in.subspan(header_bytes_), elements);
}

Status DenseCodec::accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const {
  ISTHMUS_RETURN_IF_ERROR(check(in, sum.size()));
  add(in.data() + header_bytes_, {0, numbers_in(in)}, weight, sum);
  return {};
}

Status DenseCodec::decode(std::span<const std::byte> in, std::span<float> out) const {
  ISTHMUS_RETURN_IF_ERROR(check(in, out.size()));
  const RandomNumbers numbers = numbers_in(in);
  const std::byte* body = in.data() + header_bytes_;
  // Zeroing and adding is what makes decode() and accumulate() agree.
  for (std::size_t at = 0; at < out.size(); at += kPiece) {
    const std::span<float> piece = out.subspan(at, std::min(kPiece, out.size() - at));
    std::fill(piece.begin(), piece.end(), 0.0f);
    add(body, {at, numbers}, 1.0f, piece);
    body += body_bytes(piece.size());
  }
  return {};
}

}  // namespace isthmus::compression
