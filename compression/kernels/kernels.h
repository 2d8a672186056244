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

#include "core/random.h"

namespace isthmus::compression {

static_assert(std::endian::native == std::endian::little, "records are little-endian memory");

struct Kernels {
  // Whole records of a block codec (kernels/blocks.h). `random` has 16 bits for each element, for stochastic
  // rounding; nullptr: to nearest even.
  using EncodeBlocks = void (*)(const float* in, std::size_t n, const std::uint16_t* random, std::byte* out);
  // sum[i] += weight * decoded[i].
  using Add = void (*)(const std::byte* in, std::size_t n, float weight, float* sum);

  std::string_view name;  // "scalar", "AVX2", ...

  // Whether no element of `n` is Inf or NaN.
  bool (*finite_f32)(const std::byte* in, std::size_t n);

  // out[i] = a[i] - b[i]; whether all of them are finite.
  bool (*subtract)(const float* a, const float* b, std::size_t n, float* out);

  // memcpy that leaves the caches alone where the CPU can; finish_streaming() orders it before what follows.
  void (*stream)(const std::byte* in, std::size_t n, std::byte* out);
  void (*finish_streaming)();

  // Round to nearest even, saturating (float16.h). REQUIRES: finite input, as do all encoders that follow.
  void (*to_f16)(const float* in, std::size_t n, std::byte* out);
  void (*to_bf16)(const float* in, std::size_t n, std::byte* out);
  Add add_f32;
  Add add_f16;
  Add add_bf16;

  EncodeBlocks encode_i8;
  Add add_i8;
  EncodeBlocks encode_i4;
  Add add_i4;
  EncodeBlocks encode_fp4;  // Ignores `random`.
  Add add_fp4;
  EncodeBlocks encode_sign;  // Ignores `random`.
  Add add_sign;

  // Bit i of `out`, 64 a word: whether |a[i] - b[i]| >= threshold (|a[i]| where `b` is nullptr), or is NaN.
  // The last word's other bits are 0.
  void (*mark)(const float* a, const float* b, std::size_t n, float threshold, std::uint64_t* out);

  // out[i] = in[i], clamped to [-limit, limit], times factor, or times -factor where bit i % 32 of signs[i /
  // 32] is set. `out` may be `in`.
  void (*flip)(const float* in, const std::uint32_t* signs, std::size_t n, float limit, float factor,
               float* out);

  // The Walsh-Hadamard transform of kRotated floats in place, not normalised: the stages 1, 2, 4, ... 512,
  // each a + b and a - b.
  void (*hadamard)(float* x);

  // philox4x32 of `blocks` counters, the first word of `counter` counting up; 4 words each.
  void (*philox)(core::PhiloxCounter counter, core::PhiloxKey key, std::size_t blocks, std::uint32_t* out);
};

const Kernels& scalar_kernels() noexcept;

// The fastest that this CPU runs.
const Kernels& best_kernels() noexcept;

// All that this CPU runs, the scalar one first.
std::vector<const Kernels*> available_kernels();

}  // namespace isthmus::compression
