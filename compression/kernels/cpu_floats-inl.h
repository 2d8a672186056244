// The kernels on plain floats in Highway: fp32, fp16, bf16, differences, copies. Included once a target.
//
// Each loop does whole vectors and leaves the last few elements to the scalar table, so a tail cannot differ.
//
// Threads, Memory, Errors: kernels.h.

// Highway's include guard: defined once for each target.
#if defined(ISTHMUS_CPU_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ISTHMUS_CPU_FLOATS_INL_H_
#undef ISTHMUS_CPU_FLOATS_INL_H_
#else
#define ISTHMUS_CPU_FLOATS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "compression/kernels/float16.h"
#include "compression/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace isthmus::compression::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

// Highway's fp16 conversions are IEEE where the hardware does them; its emulation for older targets is not.
#undef ISTHMUS_NATIVE_F16
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)) || HWY_ARCH_ARM_A64
#define ISTHMUS_NATIVE_F16 1
#else
#define ISTHMUS_NATIVE_F16 0
#endif

using Floats = hn::ScalableTag<float>;
using Uints = hn::RebindToUnsigned<Floats>;
using Ints = hn::RebindToSigned<Floats>;
using Shorts = hn::Rebind<std::uint16_t, Floats>;
using Float = hn::VFromD<Floats>;
using Uint = hn::VFromD<Uints>;

// How many elements ahead inputs are asked for. The CPU prefetches a stream by itself, but not while we are
// busy with what is already here.
inline constexpr std::size_t kAhead = 1024;
inline constexpr std::size_t kAddAhead = 256;  // Of sums, which are read and written.

inline constexpr std::uint32_t kExponentBits = 0x7f800000u;

HWY_INLINE Uint all_exponent(Uint bits) {
  const Uints du;
  const Uint exponent = hn::Set(du, kExponentBits);
  return hn::VecFromMask(du, hn::Eq(hn::And(bits, exponent), exponent));
}

inline bool finite_f32(const std::byte* in, std::size_t n) {
  const Uints du;
  Uint bad = hn::Zero(du);
  std::size_t i = 0;
  for (; i + hn::Lanes(du) <= n; i += hn::Lanes(du)) {
    bad = hn::Or(bad, all_exponent(hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(in + i * 4))));
  }
  return hn::AllTrue(du, hn::Eq(bad, hn::Zero(du))) && scalar_kernels().finite_f32(in + i * 4, n - i);
}

inline bool subtract(const float* a, const float* b, std::size_t n, float* out) {
  const Floats d;
  const Uints du;
  Uint bad = hn::Zero(du);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const Float difference = hn::Sub(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    hn::StoreU(difference, d, out + i);
    bad = hn::Or(bad, all_exponent(hn::BitCast(du, difference)));
  }
  const bool finite = scalar_kernels().subtract(a + i, b + i, n - i, out + i);
  return hn::AllTrue(du, hn::Eq(bad, hn::Zero(du))) && finite;
}

// A non-temporal store must be aligned; the source is in the L1 cache, where alignment costs nothing.
inline void stream(const std::byte* in, std::size_t n, std::byte* out) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t width = hn::Lanes(d);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(out) % width;
  std::size_t i = std::min(n, past == 0 ? 0 : width - past);
  if (i > 0) std::memcpy(out, in, i);
  for (; i + width <= n; i += width) {
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(in + i)), d,
               reinterpret_cast<std::uint8_t*>(out + i));
  }
  if (i < n) std::memcpy(out + i, in + i, n - i);
}

inline void finish_streaming() { hwy::FlushStream(); }

// |value| as bits, at most `limit`, and the sign bit apart.
HWY_INLINE Uint clamped(Float value, std::uint32_t limit, Uint& sign) {
  const Uints du;
  const Uint bits = hn::BitCast(du, value);
  sign = hn::And(bits, hn::Set(du, kSignBit));
  return hn::Min(hn::Xor(bits, sign), hn::Set(du, limit));
}

HWY_INLINE void store_low_halves(Uint value, std::byte* out) {
  const auto narrow = hn::DemoteTo(Shorts(), hn::BitCast(Ints(), value));
  hn::StoreU(narrow, Shorts(), reinterpret_cast<std::uint16_t*>(out));
}

inline void to_f16(const float* in, std::size_t n, std::byte* out) {
  const Floats d;
  [[maybe_unused]] const Uints du;
  std::size_t i = 0;
#pragma GCC unroll 2
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hwy::Prefetch(in + i + kAhead);
    Uint sign;
    const Uint magnitude = clamped(hn::LoadU(d, in + i), kHalfMaxBits, sign);
#if ISTHMUS_NATIVE_F16
    const hn::Rebind<hwy::float16_t, Floats> dh;
    const auto half = hn::DemoteTo(dh, hn::BitCast(d, hn::Or(magnitude, sign)));
    hn::StoreU(hn::BitCast(Shorts(), half), Shorts(), reinterpret_cast<std::uint16_t*>(out + i * 2));
#else
    const Uint odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
    const Uint normal =
        hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(du, 0x0fffu - kHalfBias)), odd));
    const Float shifted = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f));
    const Uint subnormal = hn::Sub(hn::BitCast(du, shifted), hn::Set(du, std::bit_cast<std::uint32_t>(0.5f)));
    const auto small = hn::Lt(hn::BitCast(Ints(), magnitude),
                              hn::Set(Ints(), static_cast<std::int32_t>(kHalfMinNormalBits)));
    const Uint half = hn::IfThenElse(hn::RebindMask(du, small), subnormal, normal);
    store_low_halves(hn::Or(half, hn::ShiftRight<16>(sign)), out + i * 2);
#endif
  }
  scalar_kernels().to_f16(in + i, n - i, out + i * 2);
}

inline void to_bf16(const float* in, std::size_t n, std::byte* out) {
  const Floats d;
  const Uints du;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    Uint sign;
    const Uint magnitude = clamped(hn::LoadU(d, in + i), kBf16MaxBits, sign);
    const Uint odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(du, 1u));
    const Uint rounded = hn::Add(hn::Add(magnitude, hn::Set(du, 0x7fffu)), odd);
    store_low_halves(hn::ShiftRight<16>(hn::Or(rounded, sign)), out + i * 2);
  }
  scalar_kernels().to_bf16(in + i, n - i, out + i * 2);
}

HWY_INLINE void add(Float value, Float weight, float* sum) {
  const Floats d;
  const Float decoded = hn::Add(value, hn::Zero(d));
  hn::StoreU(hn::Add(hn::LoadU(d, sum), hn::Mul(weight, decoded)), d, sum);
}

inline void add_f32(const std::byte* in, std::size_t n, float weight, float* sum) {
  const Floats d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    add(hn::LoadU(d, reinterpret_cast<const float*>(in + i * 4)), hn::Set(d, weight), sum + i);
  }
  scalar_kernels().add_f32(in + i * 4, n - i, weight, sum + i);
}

// 16-bit floats with the magnitude at most `largest`, which takes Inf and NaN patterns away.
HWY_INLINE hn::VFromD<Shorts> load_halves(const std::byte* in, std::uint16_t largest) {
  const Shorts ds;
  const auto bits = hn::LoadU(ds, reinterpret_cast<const std::uint16_t*>(in));
  const auto sign = hn::And(bits, hn::Set(ds, std::uint16_t{0x8000}));
  return hn::Or(hn::Min(hn::Xor(bits, sign), hn::Set(ds, largest)), sign);
}

HWY_INLINE Float from_f16(const std::byte* in) {
  const Floats d;
#if ISTHMUS_NATIVE_F16
  const hn::Rebind<hwy::float16_t, Floats> dh;
  return hn::PromoteTo(d, hn::BitCast(dh, load_halves(in, kHalfMax)));
#else
  const Uints du;
  const Uint bits = hn::PromoteTo(du, load_halves(in, kHalfMax));
  const Uint sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const Uint shifted = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
  const Uint one = hn::Set(du, kHalfBias + (1u << 23));
  const Float subnormal = hn::Sub(hn::BitCast(d, hn::Add(shifted, one)), hn::BitCast(d, one));
  const Uint normal = hn::Add(shifted, hn::Set(du, kHalfBias));
  const auto small = hn::Lt(hn::BitCast(Ints(), shifted), hn::Set(Ints(), 1 << 23));
  const Uint magnitude = hn::IfThenElse(hn::RebindMask(du, small), hn::BitCast(du, subnormal), normal);
  return hn::BitCast(d, hn::Or(magnitude, sign));
#endif
}

inline void add_f16(const std::byte* in, std::size_t n, float weight, float* sum) {
  const Floats d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hwy::Prefetch(sum + i + kAddAhead);
    add(from_f16(in + i * 2), hn::Set(d, weight), sum + i);
  }
  scalar_kernels().add_f16(in + i * 2, n - i, weight, sum + i);
}

inline void add_bf16(const std::byte* in, std::size_t n, float weight, float* sum) {
  const Floats d;
  const Uints du;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hwy::Prefetch(sum + i + kAddAhead);
    const Uint bits = hn::PromoteTo(du, load_halves(in + i * 2, kBf16Max));
    add(hn::BitCast(d, hn::ShiftLeft<16>(bits)), hn::Set(d, weight), sum + i);
  }
  scalar_kernels().add_bf16(in + i * 2, n - i, weight, sum + i);
}

#endif
}  // namespace isthmus::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ISTHMUS_CPU_FLOATS_INL_H_
