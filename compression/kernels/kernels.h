// The inner loops of the codecs: one table a backend, all giving the same bits.
//
// scalar_kernels() is the specification; another table may be faster, never different. Records are bytes
// without alignment; floats are aligned as floats. Multiply and add are never fused.
// In the add_* kernels a decoded value is `value + 0.0f`, so that no decoded zero has a sign: adding a
// record to zeros then equals decoding it, bit for bit.
//
// Threads: tables are constants; kernels keep no state.
// Memory:  none allocated.
// Errors:  none: codecs check records first.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace isthmus::compression {

static_assert(std::endian::native == std::endian::little, "records are little-endian memory");

struct Kernels {
  std::string_view name;  // "scalar", "AVX2", ...

  // Whether no element of `n` is Inf or NaN.
  bool (*finite_f32)(const std::byte* in, std::size_t n);
  bool (*finite_f16)(const std::byte* in, std::size_t n);
  bool (*finite_bf16)(const std::byte* in, std::size_t n);

  // The largest |in[i]|; 0 when n is 0. REQUIRES: finite input, as do all that follow.
  float (*max_abs)(const float* in, std::size_t n);

  // Round to nearest even, saturating (float16.h).
  void (*to_f16)(const float* in, std::size_t n, std::byte* out);
  void (*to_bf16)(const float* in, std::size_t n, std::byte* out);

  // out[i] = in[i] * inverse, clamped to [-127, 127], rounded to nearest even.
  void (*to_i8)(const float* in, std::size_t n, float inverse, std::byte* out);

  // sum[i] += weight * decoded(in[i]).
  void (*add_f32)(const std::byte* in, std::size_t n, float weight, float* sum);
  void (*add_f16)(const std::byte* in, std::size_t n, float weight, float* sum);
  void (*add_bf16)(const std::byte* in, std::size_t n, float weight, float* sum);
  void (*add_i8)(const std::byte* in, std::size_t n, float scale, float weight, float* sum);

  // How many |in[i]| >= threshold; the first `capacity` of their indices go to `out`, ascending. The rest of
  // `out` may be overwritten. REQUIRES: n <= 2^32.
  std::size_t (*select)(const float* in, std::size_t n, float threshold, std::uint32_t* out,
                        std::size_t capacity);
};

const Kernels& scalar_kernels() noexcept;

// The fastest that this CPU runs.
const Kernels& best_kernels() noexcept;

// All that this CPU runs, the scalar one first.
std::vector<const Kernels*> available_kernels();

}  // namespace isthmus::compression
