// The kernels of selection and randomness in Highway: marks, Philox, Hadamard. Included once a target.
//
// Threads, Memory, Errors: kernels.h.

// Highway's include guard: defined once for each target.
#if defined(ISTHMUS_CPU_MIXING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ISTHMUS_CPU_MIXING_INL_H_
#undef ISTHMUS_CPU_MIXING_INL_H_
#else
#define ISTHMUS_CPU_MIXING_INL_H_
#endif

#include <hwy/highway.h>

#include <utility>

#include "compression/kernels/cpu_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace isthmus::compression::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

// Magnitudes are compared as integers: their order is that of the floats, and a NaN is above them all.
template <bool kDifference>
HWY_INLINE std::size_t mark_words(const float* a, const float* b, std::size_t n, float threshold,
                                  std::uint64_t* out) {
  const SumFloats d;
  const hn::RebindToSigned<SumFloats> di;
  const auto below = hn::Set(di, std::bit_cast<std::int32_t>(threshold) - 1);
  const auto magnitude = hn::Set(di, 0x7fffffff);
  auto* bits = reinterpret_cast<std::uint8_t*>(out);
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
#pragma GCC unroll 4
    for (std::size_t k = i; k < i + 64; k += kSumLanes, bits += 2) {
      store_bits_of_16(
          [&](std::size_t lane) HWY_ATTR {
            auto value = hn::LoadU(d, a + k + lane);
            if constexpr (kDifference) value = hn::Sub(value, hn::LoadU(d, b + k + lane));
            return hn::RebindMask(d, hn::Gt(hn::And(hn::BitCast(di, value), magnitude), below));
          },
          bits);
    }
  }
  return i;
}

inline void mark(const float* a, const float* b, std::size_t n, float threshold, std::uint64_t* out) {
  const std::size_t i =
      b == nullptr ? mark_words<false>(a, b, n, threshold, out) : mark_words<true>(a, b, n, threshold, out);
  scalar_kernels().mark(a + i, b == nullptr ? nullptr : b + i, n - i, threshold, out + i / 64);
}

inline void flip(const float* in, const std::uint32_t* signs, std::size_t n, float limit, float factor,
                 float* out) {
  const SumFloats d;
  const hn::RebindToUnsigned<SumFloats> du;
  HWY_ALIGN std::uint32_t places[32];
  for (std::size_t i = 0; i < 32; ++i) places[i] = 1u << i;
  const auto high = hn::Set(d, limit);
  const auto low = hn::Set(d, -limit);
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const auto word = hn::Set(du, signs[i / 32]);
    for (std::size_t k = 0; k < 32; k += hn::Lanes(d)) {
      const auto minus = hn::Ne(hn::And(word, hn::Load(du, places + k)), hn::Zero(du));
      const auto by = hn::IfThenElse(hn::RebindMask(d, minus), hn::Set(d, -factor), hn::Set(d, factor));
      const auto clamped = hn::Min(hn::Max(hn::LoadU(d, in + i + k), low), high);
      hn::StoreU(hn::Mul(clamped, by), d, out + i + k);
    }
  }
  scalar_kernels().flip(in + i, signs + i / 32, n - i, limit, factor, out + i);
}

// Five rounds of two stages each. A round reads groups of four neighbours, whose places differ in the two
// lowest bits of the index, and writes the four results into four quarters: the index is rotated by two bits,
// so the next stages' partners are neighbours in their turn, and after ten bits all is in place again.
inline void hadamard(float* x) {
  const Floats d;
  constexpr std::size_t quarter = kRotated / 4;
  HWY_ALIGN float scratch[kRotated];
  float* from = x;
  float* to = scratch;
  for (int round = 0; round < 5; ++round, std::swap(from, to)) {
    for (std::size_t i = 0; i < quarter; i += hn::Lanes(d)) {
      Float v0, v1, v2, v3;
      hn::LoadInterleaved4(d, from + 4 * i, v0, v1, v2, v3);
      const Float s0 = hn::Add(v0, v1);
      const Float d0 = hn::Sub(v0, v1);
      const Float s1 = hn::Add(v2, v3);
      const Float d1 = hn::Sub(v2, v3);
      hn::StoreU(hn::Add(s0, s1), d, to + i);
      hn::StoreU(hn::Add(d0, d1), d, to + quarter + i);
      hn::StoreU(hn::Sub(s0, s1), d, to + 2 * quarter + i);
      hn::StoreU(hn::Sub(d0, d1), d, to + 3 * quarter + i);
    }
  }
  std::memcpy(x, from, sizeof(scratch));
}

// The high and low words of a[i] * factor.
HWY_INLINE void multiply(Uint a, std::uint32_t factor, Uint& high, Uint& low) {
  const Uints du;
  const hn::RepartitionToWide<Uints> wide;
  const Uint by = hn::Set(du, factor);
  const auto even = hn::MulEven(a, by);
  const auto odd = hn::MulEven(hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(wide, a))), by);
  high = hn::OddEven(hn::BitCast(du, odd), hn::BitCast(du, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(odd)), hn::BitCast(du, even));
}

// core/random.h's philox4x32, one counter a lane.
inline void philox(core::PhiloxCounter counter, core::PhiloxKey key, std::size_t blocks, std::uint32_t* out) {
  const Uints du;
  std::size_t i = 0;
  for (; i + hn::Lanes(du) <= blocks; i += hn::Lanes(du)) {
    Uint c0 = hn::Iota(du, counter[0] + static_cast<std::uint32_t>(i));
    Uint c1 = hn::Set(du, counter[1]);
    Uint c2 = hn::Set(du, counter[2]);
    Uint c3 = hn::Set(du, counter[3]);
    core::PhiloxKey k = key;
    for (int round = 0; round < 10; ++round) {
      Uint high_a, low_a, high_b, low_b;
      multiply(c0, 0xD2511F53u, high_a, low_a);
      multiply(c2, 0xCD9E8D57u, high_b, low_b);
      c0 = hn::Xor(hn::Xor(high_b, c1), hn::Set(du, k[0]));
      c1 = low_b;
      c2 = hn::Xor(hn::Xor(high_a, c3), hn::Set(du, k[1]));
      c3 = low_a;
      k[0] += 0x9E3779B9u;
      k[1] += 0xBB67AE85u;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, du, out + 4 * i);
  }
  counter[0] += static_cast<std::uint32_t>(i);
  scalar_kernels().philox(counter, key, blocks - i, out + 4 * i);
}

#endif
}  // namespace isthmus::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ISTHMUS_CPU_MIXING_INL_H_
