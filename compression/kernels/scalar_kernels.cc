// The specification: what each kernel computes, one element at a time.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compression/kernels/float16.h"
#include "compression/kernels/kernels.h"

namespace isthmus::compression {
namespace {

template <typename T>
T load(const std::byte* in, std::size_t index) {
  T value;
  std::memcpy(&value, in + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* out, std::size_t index, T value) {
  std::memcpy(out + index * sizeof(T), &value, sizeof(T));
}

template <typename T, T kExponent>
bool finite(const std::byte* in, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if ((load<T>(in, i) & kExponent) == kExponent) return false;
  }
  return true;
}

float max_abs(const float* in, std::size_t n) {
  float largest = 0.0f;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(in[i]));
  return largest;
}

template <std::uint16_t (*kNarrow)(float)>
void narrow(const float* in, std::size_t n, std::byte* out) {
  for (std::size_t i = 0; i < n; ++i) store(out, i, kNarrow(in[i]));
}

// Floats from 2^23 to 2^24 are the integers: adding 1.5 * 2^23 rounds to nearest even.
constexpr float kRounder = 12582912.0f;

void to_i8(const float* in, std::size_t n, float inverse, std::byte* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const float scaled = std::clamp(in[i] * inverse, -127.0f, 127.0f);
    store(out, i, static_cast<std::int8_t>((scaled + kRounder) - kRounder));
  }
}

void add(float value, float weight, float& sum) {
  const float decoded = value + 0.0f;
  sum += weight * decoded;
}

void add_f32(const std::byte* in, std::size_t n, float weight, float* sum) {
  for (std::size_t i = 0; i < n; ++i) add(load<float>(in, i), weight, sum[i]);
}

template <float (*kWiden)(std::uint16_t)>
void add_16(const std::byte* in, std::size_t n, float weight, float* sum) {
  for (std::size_t i = 0; i < n; ++i) add(kWiden(load<std::uint16_t>(in, i)), weight, sum[i]);
}

void add_i8(const std::byte* in, std::size_t n, float scale, float weight, float* sum) {
  for (std::size_t i = 0; i < n; ++i) {
    add(static_cast<float>(load<std::int8_t>(in, i)) * scale, weight, sum[i]);
  }
}

std::size_t select(const float* in, std::size_t n, float threshold, std::uint32_t* out,
                   std::size_t capacity) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::fabs(in[i]) < threshold) continue;
    if (found < capacity) out[found] = static_cast<std::uint32_t>(i);
    ++found;
  }
  return found;
}

}  // namespace

const Kernels& scalar_kernels() noexcept {
  static constexpr Kernels table{
      .name = "scalar",
      .finite_f32 = finite<std::uint32_t, 0x7f800000u>,
      .finite_f16 = finite<std::uint16_t, kHalfExponent>,
      .finite_bf16 = finite<std::uint16_t, kBf16Exponent>,
      .max_abs = max_abs,
      .to_f16 = narrow<to_half>,
      .to_bf16 = narrow<compression::to_bf16>,
      .to_i8 = to_i8,
      .add_f32 = add_f32,
      .add_f16 = add_16<from_half>,
      .add_bf16 = add_16<from_bf16>,
      .add_i8 = add_i8,
      .select = select,
  };
  return table;
}

}  // namespace isthmus::compression
