// Inputs and measures that the codec tests share.
//
// Threads: any.  Memory: vectors.  Errors: none.

#pragma once

#include <algorithm>
#include <cfloat>
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

// The same, but with this much heavier tails: its density is exp(-|x| sqrt 2) / sqrt 2.
inline std::vector<float> laplace(std::size_t n, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> result(n);
  for (float& value : result) {
    const double size = -std::log((random() + 0.5) / 4294967296.0) / std::sqrt(2.0);
    value = static_cast<float>(random() % 2 == 0 ? size : -size);
  }
  return result;
}

inline std::size_t passing(std::span<const float> in, float threshold) {
  return static_cast<std::size_t>(
      std::count_if(in.begin(), in.end(), [&](float v) { return std::fabs(v) >= threshold; }));
}

// What trips a codec: zeros of both signs, subnormals, limits, the edges of fp16.
inline std::vector<float> awkward(std::size_t n) {
  std::vector<float> values = gaussian(n, static_cast<std::uint32_t>(n) + 5, 1e-3f);
  const float special[] = {0.0f,    -0.0f,    FLT_MAX,  -FLT_MAX, FLT_MIN,  1e-40f,
                           -1e-45f, 65504.0f, 65520.0f, 1e-7f,    -2.9e-8f, 3.4e38f};
  for (std::size_t i = 0; i < n; i += 3) values[i] = special[(i / 3) % std::size(special)];
  return values;
}

// Every kind, and every way that a kind can be configured.
inline std::vector<core::CodecConfig> all_codecs() {
  using core::CodecKind, core::KeptValues, core::Rounding;
  std::vector<core::CodecConfig> all;
  for (std::size_t kind = 0; kind < names_of(CodecKind()).size(); ++kind) {
    all.push_back({.kind = static_cast<CodecKind>(kind), .keep = 0.1});
  }
  for (const CodecKind kind : {CodecKind::kTopk, CodecKind::kRandk}) {
    all.push_back({.kind = kind, .keep = 0.1, .values = KeptValues::kFp32});
    all.push_back({.kind = kind, .keep = 0.1, .values = KeptValues::kInt8});
    all.push_back({.kind = kind, .keep = 1.0});
  }
  all.push_back({.kind = CodecKind::kTopk, .keep = 0.01});
  all.push_back({.kind = CodecKind::kInt8, .rounding = Rounding::kStochastic});
  all.push_back({.kind = CodecKind::kInt4, .rounding = Rounding::kStochastic});
  all.push_back({.kind = CodecKind::kInt4, .rotate = true});
  all.push_back({.kind = CodecKind::kInt4, .rounding = Rounding::kStochastic, .rotate = true});
  return all;
}

// Letters, digits and underscores only, for names of tests.
inline std::string name_of(const core::CodecConfig& config) {
  std::string name(to_string(config.kind));
  if (config.kind == core::CodecKind::kTopk || config.kind == core::CodecKind::kRandk) {
    name += std::to_string(static_cast<int>(config.keep * 100)) + std::string(to_string(config.values));
  }
  if (config.rotate) name += "_rotated";
  if (config.rounding == core::Rounding::kStochastic) name += "_stochastic";
  return name;
}

}  // namespace isthmus::compression
