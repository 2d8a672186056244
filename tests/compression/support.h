// Inputs and measures that the codec tests share.
//
// Threads: any.  Memory: vectors.  Errors: none.

#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compression/codec.h"
#include "compression/kernels/kernels.h"

namespace isthmus::compression {

using Bytes = std::vector<std::byte>;

inline Bytes bytes(std::initializer_list<int> values) {
  Bytes result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

// Box-Muller, so that every standard library draws the same numbers.
inline std::vector<float> gaussian(std::size_t n, std::uint32_t seed = 1, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::vector<float> result(n);
  for (float& value : result) {
    const double u = (random() + 0.5) / 4294967296.0;
    const double v = random() / 4294967296.0;
    value = scale * static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
  }
  return result;
}

inline Bytes encode(const Codec& codec, std::span<const float> in, CodecState& state) {
  Bytes out(codec.max_encoded_bytes(in.size()));
  out.resize(codec.encode(in, state, out));
  return out;
}

inline Bytes encode(const Codec& codec, std::span<const float> in) {
  CodecState state;
  return encode(codec, in, state);
}

// ||x - y||^2 / ||x||^2
inline double nmse(std::span<const float> x, std::span<const float> y) {
  double error = 0.0;
  double power = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    power += double{x[i]} * x[i];
  }
  return error / power;
}

inline double measured_nmse(const Codec& codec, std::span<const float> in) {
  std::vector<float> decoded(in.size());
  const Bytes record = encode(codec, in);
  return codec.decode(record, decoded).ok() ? nmse(in, decoded) : -1.0;
}

inline std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> result;
  for (const float value : values) result.push_back(std::bit_cast<std::uint32_t>(value));
  return result;
}

inline std::vector<core::CodecConfig> all_codecs() {
  using core::CodecKind;
  return {{CodecKind::kFp32}, {CodecKind::kFp16},       {CodecKind::kBf16},
          {CodecKind::kInt8}, {CodecKind::kTopk, 0.01}, {CodecKind::kTopk, 1.0}};
}

}  // namespace isthmus::compression
