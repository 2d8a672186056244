// The specification: what each kernel computes, one element at a time.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compression/kernels/codes.h"
#include "compression/kernels/kernels.h"

namespace isthmus::compression {
namespace {

template <typename T>
T load(const std::byte* in, std::size_t index = 0) {
  T value;
  std::memcpy(&value, in + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* out, std::size_t index, T value) {
  std::memcpy(out + index * sizeof(T), &value, sizeof(T));
}

bool finite_f32(const std::byte* in, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_finite(load<float>(in, i))) return false;
  }
  return true;
}

bool subtract(const float* a, const float* b, std::size_t n, float* out) {
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = a[i] - b[i];
    finite = finite && is_finite(out[i]);
  }
  return finite;
}

void stream(const std::byte* in, std::size_t n, std::byte* out) {
  if (n > 0) std::memcpy(out, in, n);
}

void finish_streaming() {}

template <std::uint16_t (*kNarrow)(float)>
void narrow(const float* in, std::size_t n, std::byte* out) {
  for (std::size_t i = 0; i < n; ++i) store(out, i, kNarrow(in[i]));
}

void add_f32(const std::byte* in, std::size_t n, float weight, float* sum) {
  for (std::size_t i = 0; i < n; ++i) add_decoded(load<float>(in, i), weight, sum[i]);
}

template <float (*kWiden)(std::uint16_t)>
void add_16(const std::byte* in, std::size_t n, float weight, float* sum) {
  for (std::size_t i = 0; i < n; ++i) add_decoded(kWiden(load<std::uint16_t>(in, i)), weight, sum[i]);
}

float max_abs(const float* in, std::size_t n) {
  float largest = 0.0f;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(in[i]));
  return largest;
}

// `random` of element i, or to nearest where there is none.
int quantise_with(const std::uint16_t* random, std::size_t i, float scaled, int limit) {
  return random == nullptr ? quantise(scaled, limit) : quantise(scaled, limit, random[i]);
}

void encode_i8(const float* in, std::size_t n, const std::uint16_t* random, std::byte* out) {
  for (std::size_t at = 0; at < n; at += kInt8Block) {
    const std::size_t length = std::min(kInt8Block, n - at);
    const float largest = max_abs(in + at, length);
    const float scale = int8_scale(largest);
    const float inverse = int8_inverse(scale, largest);
    store(out, 0, scale);
    out += kInt8ScaleBytes;
    for (std::size_t i = at; i < at + length; ++i) {
      *out++ = static_cast<std::byte>(quantise_with(random, i, in[i] * inverse, 127));
    }
  }
}

void add_i8(const std::byte* in, std::size_t n, float weight, float* sum) {
  for (std::size_t at = 0; at < n; at += kInt8Block) {
    const std::size_t length = std::min(kInt8Block, n - at);
    const float scale = load<float>(in);
    in += kInt8ScaleBytes;
    for (std::size_t i = at; i < at + length; ++i) {
      add_decoded(int8_value(static_cast<std::int8_t>(*in++), scale), weight, sum[i]);
    }
  }
}

// The blocks of int4 and fp4: element i and element i + half share a byte, the first in the low bits.
template <typename Scale, typename Code>
void encode_nibbles(const float* in, std::size_t n, std::byte* out, float top, Scale scale_of, Code code_of) {
  for (std::size_t at = 0; at < n; at += kNibbleBlock) {
    const std::size_t length = std::min(kNibbleBlock, n - at);
    const std::size_t half = (length + 1) / 2;
    const float largest = max_abs(in + at, length);
    const std::uint16_t scale = scale_of(largest);
    const float inverse = nibble_inverse(scale, largest, top);
    store(out, 0, scale);
    out += kNibbleScaleBytes;
    for (std::size_t i = at; i < at + half; ++i) {
      const unsigned low = code_of(in[i] * inverse, i);
      const unsigned high = i + half < at + length ? code_of(in[i + half] * inverse, i + half) : 0;
      *out++ = static_cast<std::byte>((low & 15u) | high << 4);
    }
  }
}

template <typename Value>
void add_nibbles(const std::byte* in, std::size_t n, float weight, float* sum, Value value_of) {
  for (std::size_t at = 0; at < n; at += kNibbleBlock) {
    const std::size_t length = std::min(kNibbleBlock, n - at);
    const std::size_t half = (length + 1) / 2;
    const float scale = from_bf16(load<std::uint16_t>(in));
    in += kNibbleScaleBytes;
    for (std::size_t i = at; i < at + half; ++i) {
      const auto codes = static_cast<unsigned>(*in++);
      add_decoded(value_of(codes & 15u, scale), weight, sum[i]);
      if (i + half < at + length) add_decoded(value_of(codes >> 4, scale), weight, sum[i + half]);
    }
  }
}

void encode_i4(const float* in, std::size_t n, const std::uint16_t* random, std::byte* out) {
  encode_nibbles(in, n, out, kInt4Top, int4_scale, [&](float scaled, std::size_t i) {
    return static_cast<unsigned>(quantise_with(random, i, scaled, 7));
  });
}

void add_i4(const std::byte* in, std::size_t n, float weight, float* sum) {
  add_nibbles(in, n, weight, sum, int4_value);
}

void encode_fp4(const float* in, std::size_t n, const std::uint16_t*, std::byte* out) {
  encode_nibbles(in, n, out, kFp4Top, fp4_scale, [](float scaled, std::size_t) { return fp4_code(scaled); });
}

void add_fp4(const std::byte* in, std::size_t n, float weight, float* sum) {
  add_nibbles(in, n, weight, sum, fp4_value);
}

void encode_sign(const float* in, std::size_t n, const std::uint16_t*, std::byte* out) {
  for (std::size_t at = 0; at < n; at += kSignBlock) {
    const std::size_t length = std::min(kSignBlock, n - at);
    float lanes[kSumLanes] = {};
    for (std::size_t i = 0; i < length; ++i) lanes[i % kSumLanes] += sign_part(in[at + i]);
    store(out, 0, sign_scale(add_lanes(lanes), length));
    out += kSignScaleBytes;
    for (std::size_t i = 0; i < length; i += 8) {
      unsigned bits = 0;
      for (std::size_t k = i; k < std::min(i + 8, length); ++k)
        bits |= (in[at + k] < 0.0f ? 1u : 0u) << (k - i);
      *out++ = static_cast<std::byte>(bits);
    }
  }
}

void add_sign(const std::byte* in, std::size_t n, float weight, float* sum) {
  for (std::size_t at = 0; at < n; at += kSignBlock) {
    const std::size_t length = std::min(kSignBlock, n - at);
    const float scale = load<float>(in);
    in += kSignScaleBytes;
    for (std::size_t i = 0; i < length; ++i) {
      const bool negative = (static_cast<unsigned>(in[i / 8]) >> (i % 8) & 1u) != 0;
      add_decoded(sign_value(negative, scale), weight, sum[at + i]);
    }
    in += (length + 7) / 8;
  }
}

void mark(const float* a, const float* b, std::size_t n, float threshold, std::uint64_t* out) {
  for (std::size_t at = 0; at < n; at += 64) {
    std::uint64_t bits = 0;
    for (std::size_t i = at; i < std::min(at + 64, n); ++i) {
      const float value = b == nullptr ? a[i] : a[i] - b[i];
      if (!(std::fabs(value) < threshold)) bits |= std::uint64_t{1} << (i - at);
    }
    *out++ = bits;
  }
}

void flip(const float* in, const std::uint32_t* signs, std::size_t n, float limit, float factor, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const bool minus = (signs[i / 32] >> (i % 32) & 1u) != 0;
    out[i] = flipped(in[i], minus, limit, factor);
  }
}

void hadamard(float* x) {
  for (std::size_t step = 1; step < kRotated; step *= 2) {
    for (std::size_t i = 0; i < kRotated; ++i) {
      if ((i & step) != 0) continue;
      const float a = x[i];
      const float b = x[i + step];
      x[i] = a + b;
      x[i + step] = a - b;
    }
  }
}

void philox(core::PhiloxCounter counter, core::PhiloxKey key, std::size_t blocks, std::uint32_t* out) {
  for (std::size_t i = 0; i < blocks; ++i) {
    const core::PhiloxCounter words = core::philox4x32(counter, key);
    out = std::copy(words.begin(), words.end(), out);
    ++counter[0];
  }
}

}  // namespace

const Kernels& scalar_kernels() noexcept {
  static constexpr Kernels table{
      .name = "scalar",
      .finite_f32 = finite_f32,
      .subtract = subtract,
      .stream = stream,
      .finish_streaming = finish_streaming,
      .to_f16 = narrow<to_half>,
      .to_bf16 = narrow<compression::to_bf16>,
      .add_f32 = add_f32,
      .add_f16 = add_16<from_half>,
      .add_bf16 = add_16<from_bf16>,
      .encode_i8 = encode_i8,
      .add_i8 = add_i8,
      .encode_i4 = encode_i4,
      .add_i4 = add_i4,
      .encode_fp4 = encode_fp4,
      .add_fp4 = add_fp4,
      .encode_sign = encode_sign,
      .add_sign = add_sign,
      .mark = mark,
      .flip = flip,
      .hadamard = hadamard,
      .philox = philox,
  };
  return table;
}

}  // namespace isthmus::compression
