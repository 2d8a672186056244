// The kernels of the block codecs in Highway: int8, int4, fp4, sign. Included once a target.
//
// A loop over the elements of a block must not have a length that the compiler knows: gcc 12 would unroll it
// whole, which costs 1.7 times the time.
//
// Threads, Memory, Errors: kernels.h.

// Highway's include guard: defined once for each target.
#if defined(ISTHMUS_CPU_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ISTHMUS_CPU_BLOCKS_INL_H_
#undef ISTHMUS_CPU_BLOCKS_INL_H_
#else
#define ISTHMUS_CPU_BLOCKS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "compression/kernels/blocks.h"
#include "compression/kernels/cpu_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace isthmus::compression::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

using Chars = hn::Rebind<std::int8_t, Floats>;
using Bytes = hn::Rebind<std::uint8_t, Floats>;
using Int = hn::VFromD<Ints>;

// The largest of |in[0]| ... |in[n - 1]|. REQUIRES: n is a multiple of the vector length.
HWY_INLINE float max_abs(const float* in, std::size_t n) {
  const Floats d;
  Float even = hn::Zero(d);
  Float odd = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * hn::Lanes(d) <= n; i += 2 * hn::Lanes(d)) {
    even = hn::Max(even, hn::Abs(hn::LoadU(d, in + i)));
    odd = hn::Max(odd, hn::Abs(hn::LoadU(d, in + i + hn::Lanes(d))));
  }
  if (i < n) even = hn::Max(even, hn::Abs(hn::LoadU(d, in + i)));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(even, odd)));
}

// Scaled elements as integers from -limit to limit.
template <bool kRandom>
HWY_INLINE Int quantise(Float scaled, Int limit, const std::uint16_t* random) {
  if constexpr (!kRandom) return hn::NearestInt(scaled);  // Within the limit, as blocks.h promises.
  const Floats d;
  const auto words = hn::PromoteTo(Ints(), hn::LoadU(Shorts(), random));
  const Float uniform = hn::Mul(hn::Add(hn::ConvertTo(d, words), hn::Set(d, 0.5f)), hn::Set(d, 0x1p-16f));
  const Int codes = hn::ConvertTo(Ints(), hn::Floor(hn::Add(scaled, uniform)));
  return hn::Min(hn::Max(codes, hn::Neg(limit)), limit);
}

// Four vectors of integers from -128 to 127 as bytes, in order.
HWY_INLINE void store_bytes(Int a, Int b, Int c, Int e, std::byte* out) {
#if HWY_TARGET == HWY_AVX2
  // The packs work on halves of a register each; one permutation puts all in order.
  const __m256i ab = _mm256_packs_epi32(a.raw, b.raw);
  const __m256i ce = _mm256_packs_epi32(c.raw, e.raw);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, ce), order));
#else
  for (const Int values : {a, b, c, e}) {
    hn::StoreU(hn::DemoteTo(Chars(), values), Chars(), reinterpret_cast<std::int8_t*>(out));
    out += hn::Lanes(Chars());
  }
#endif
}

// Blocks are encoded a group at a time: first all maxima, then all scales, then all codes. Done block by
// block, each would wait for the divisions of its own scale.
inline constexpr std::size_t kGroup = kAhead;

template <bool kRandom>
HWY_INLINE std::size_t encode_i8_blocks(const float* in, std::size_t n, const std::uint16_t* random,
                                        std::byte* out) {
  const Floats d;
  const Int limit = hn::Set(Ints(), 127);
  const std::size_t lanes = hn::Lanes(d);
  float largest[kGroup / kInt8Block];
  float scales[kGroup / kInt8Block];
  float inverses[kGroup / kInt8Block];
  std::size_t at = 0;
  while (at + kInt8Block <= n) {
    const std::size_t blocks = std::min(kGroup, n - at) / kInt8Block;
    for (std::size_t k = 0; k < blocks; ++k) largest[k] = max_abs(in + at + k * kInt8Block, kInt8Block);
    for (std::size_t k = 0; k < blocks; ++k) {
      scales[k] = int8_scale(largest[k]);
      inverses[k] = int8_inverse(scales[k], largest[k]);
    }
    for (std::size_t k = 0; k < blocks; ++k) {
      std::memcpy(out, &scales[k], kInt8ScaleBytes);
      out += kInt8ScaleBytes;
      const Float inverse = hn::Set(d, inverses[k]);
      const auto codes_at = [&](std::size_t i) HWY_ATTR {
        return quantise<kRandom>(hn::Mul(hn::LoadU(d, in + i), inverse), limit,
                                 kRandom ? random + i : nullptr);
      };
      for (const std::size_t end = at + kInt8Block; at < end; at += 4 * lanes, out += 4 * lanes) {
        hwy::Prefetch(in + at + kAhead);
        hwy::Prefetch(in + at + kAhead + 16);
        store_bytes(codes_at(at), codes_at(at + lanes), codes_at(at + 2 * lanes), codes_at(at + 3 * lanes),
                    out);
      }
    }
  }
  return at;
}

inline void encode_i8(const float* in, std::size_t n, const std::uint16_t* random, std::byte* out) {
  const std::size_t at = random == nullptr ? encode_i8_blocks<false>(in, n, random, out)
                                           : encode_i8_blocks<true>(in, n, random, out);
  out += at + at / kInt8Block * kInt8ScaleBytes;
  scalar_kernels().encode_i8(in + at, n - at, random == nullptr ? random : random + at, out);
}

inline void add_i8(const std::byte* in, std::size_t n, float weight, float* sum) {
  const Floats d;
  std::size_t at = 0;
  for (; at + kInt8Block <= n; at += kInt8Block) {
    float scale;
    std::memcpy(&scale, in, kInt8ScaleBytes);
    in += kInt8ScaleBytes;
#pragma GCC unroll 4
    for (std::size_t i = at; i < at + kInt8Block; i += hn::Lanes(d), in += hn::Lanes(d)) {
      hwy::Prefetch(sum + i + kAddAhead);
      const auto codes = hn::LoadU(Chars(), reinterpret_cast<const std::int8_t*>(in));
      add(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(Ints(), codes)), hn::Set(d, scale)), hn::Set(d, weight),
          sum + i);
    }
  }
  scalar_kernels().add_i8(in, n - at, weight, sum + at);
}

// The blocks of int4 and fp4; `code_of` gives 4 bits from scaled elements and the index of the first.
template <typename Scale, typename Code>
HWY_INLINE std::size_t encode_nibble_blocks(const float* in, std::size_t n, std::byte* out, float top,
                                            Scale scale_of, Code code_of) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t half = kNibbleBlock / 2;
  float largest[kGroup / kNibbleBlock];
  float inverses[kGroup / kNibbleBlock];
  std::uint16_t scales[kGroup / kNibbleBlock];
  std::size_t at = 0;
  while (at + kNibbleBlock <= n) {
    const std::size_t blocks = std::min(kGroup, n - at) / kNibbleBlock;
    for (std::size_t k = 0; k < blocks; ++k) largest[k] = max_abs(in + at + k * kNibbleBlock, kNibbleBlock);
    for (std::size_t k = 0; k < blocks; ++k) {
      scales[k] = scale_of(largest[k]);
      inverses[k] = nibble_inverse(scales[k], largest[k], top);
    }
    for (std::size_t k = 0; k < blocks; ++k, at += half) {
      std::memcpy(out, &scales[k], kNibbleScaleBytes);
      out += kNibbleScaleBytes;
      const Float inverse = hn::Set(d, inverses[k]);
      // The low and the high code of as many bytes as a vector has lanes.
      const auto both_at = [&](std::size_t i) HWY_ATTR {
        const Int low = code_of(hn::Mul(hn::LoadU(d, in + i), inverse), i);
        const Int high = code_of(hn::Mul(hn::LoadU(d, in + i + half), inverse), i + half);
        return hn::Or(hn::And(low, hn::Set(Ints(), 15)), hn::ShiftLeft<4>(high));
      };
      hwy::Prefetch(in + at + kAhead);
      hwy::Prefetch(in + at + kAhead + 16);
      hwy::Prefetch(in + at + kAhead + 32);
      hwy::Prefetch(in + at + kAhead + 48);
      for (const std::size_t end = at + half; at < end; at += 4 * lanes, out += 4 * lanes) {
        store_bytes(both_at(at), both_at(at + lanes), both_at(at + 2 * lanes), both_at(at + 3 * lanes), out);
      }
    }
  }
  return at;
}

template <typename Value>
HWY_INLINE std::size_t add_nibble_blocks(const std::byte* in, std::size_t n, float weight, float* sum,
                                         Value value_of) {
  const Floats d;
  const std::size_t half = kNibbleBlock / 2;
  std::size_t at = 0;
  for (; at + kNibbleBlock <= n; at += kNibbleBlock) {
    std::uint16_t bits;
    std::memcpy(&bits, in, kNibbleScaleBytes);
    in += kNibbleScaleBytes;
    const Float scale = hn::Set(d, from_bf16(bits));
    for (std::size_t i = at; i < at + half; i += hn::Lanes(d), in += hn::Lanes(d)) {
      const Int both = hn::PromoteTo(Ints(), hn::LoadU(Bytes(), reinterpret_cast<const std::uint8_t*>(in)));
      hwy::Prefetch(sum + i + kAddAhead);
      hwy::Prefetch(sum + i + half + kAddAhead);
      add(value_of(hn::And(both, hn::Set(Ints(), 15)), scale), hn::Set(d, weight), sum + i);
      add(value_of(hn::ShiftRight<4>(both), scale), hn::Set(d, weight), sum + i + half);
    }
  }
  return at;
}

inline std::size_t nibble_bytes(std::size_t whole_blocks) {
  return whole_blocks / kNibbleBlock * (kNibbleScaleBytes + kNibbleBlock / 2);
}

inline void encode_i4(const float* in, std::size_t n, const std::uint16_t* random, std::byte* out) {
  const Int limit = hn::Set(Ints(), 7);
  std::size_t at;
  if (random == nullptr) {
    at = encode_nibble_blocks(in, n, out, kInt4Top, int4_scale, [&](Float scaled, std::size_t) HWY_ATTR {
      return quantise<false>(scaled, limit, nullptr);
    });
  } else {
    at = encode_nibble_blocks(in, n, out, kInt4Top, int4_scale, [&](Float scaled, std::size_t i) HWY_ATTR {
      return quantise<true>(scaled, limit, random + i);
    });
    random += at;
  }
  scalar_kernels().encode_i4(in + at, n - at, random, out + nibble_bytes(at));
}

inline void add_i4(const std::byte* in, std::size_t n, float weight, float* sum) {
  const std::size_t at = add_nibble_blocks(in, n, weight, sum, [](Int code, Float scale) HWY_ATTR {
    const Int wide = hn::Sub(hn::Xor(code, hn::Set(Ints(), 8)), hn::Set(Ints(), 8));
    return hn::Mul(hn::ConvertTo(Floats(), wide), scale);
  });
  scalar_kernels().add_i4(in + nibble_bytes(at), n - at, weight, sum + at);
}

inline void encode_fp4(const float* in, std::size_t n, const std::uint16_t* random, std::byte* out) {
  const std::size_t at =
      encode_nibble_blocks(in, n, out, kFp4Top, fp4_scale, [](Float scaled, std::size_t) HWY_ATTR {
        const Ints di;
        const Int bits = hn::BitCast(di, scaled);
        const Int magnitude = hn::And(bits, hn::Set(di, 0x7fffffff));
        const Int exponent = hn::ShiftRight<23>(hn::Add(magnitude, hn::Set(di, 0x00400000)));
        const auto at_least_one =
            hn::Gt(magnitude, hn::Set(di, static_cast<std::int32_t>(kFp4LeastBits) - 1));
        const Int least = hn::And(hn::VecFromMask(di, at_least_one), hn::Set(di, 1));
        const Int code = hn::Max(hn::Sub(exponent, hn::Set(di, 120)), least);
        // The sign is the fourth bit, and the code of zero has none.
        const Int sign = hn::And(hn::ShiftRight<31>(bits), hn::Set(di, -8));
        return hn::IfThenElse(hn::Eq(code, hn::Zero(di)), code, hn::Or(code, sign));
      });
  scalar_kernels().encode_fp4(in + at, n - at, random, out + nibble_bytes(at));
}

inline void add_fp4(const std::byte* in, std::size_t n, float weight, float* sum) {
  const std::size_t at = add_nibble_blocks(in, n, weight, sum, [](Int code, Float scale) HWY_ATTR {
    const Ints di;
    const Int power = hn::And(code, hn::Set(di, 7));
    const Float factor = hn::BitCast(Floats(), hn::ShiftLeft<23>(hn::Add(power, hn::Set(di, 120))));
    const Int sign = hn::ShiftLeft<28>(hn::And(code, hn::Set(di, 8)));
    const Int value = hn::Or(hn::BitCast(di, hn::Mul(factor, scale)), sign);
    return hn::BitCast(Floats(), hn::IfThenElse(hn::Eq(power, hn::Zero(di)), power, value));
  });
  scalar_kernels().add_fp4(in + nibble_bytes(at), n - at, weight, sum + at);
}

// At most kSumLanes of them: whole vectors fill the 16 partial sums, and 16 elements fill two bytes of signs.
using SumFloats = hn::CappedTag<float, kSumLanes>;

// The signs of `kSumLanes` elements, which `mask_at` gives a vector at a time, as bits.
template <typename Mask>
HWY_INLINE void store_bits_of_16(Mask mask_at, std::uint8_t* out) {
  const SumFloats d;
  const std::size_t lanes = hn::Lanes(d);
  if (lanes >= 8) {
    for (std::size_t i = 0; i < kSumLanes; i += lanes) hn::StoreMaskBits(d, mask_at(i), out + i / 8);
    return;
  }
  std::uint8_t bits[8] = {};
  for (std::size_t byte = 0; byte < 2; ++byte) {
    unsigned all = 0;
    for (std::size_t i = 0; i < 8; i += lanes) {
      hn::StoreMaskBits(d, mask_at(byte * 8 + i), bits);
      all |= static_cast<unsigned>(bits[0]) << i;
    }
    out[byte] = static_cast<std::uint8_t>(all);
  }
}

inline void encode_sign(const float* in, std::size_t n, const std::uint16_t* random, std::byte* out) {
  const SumFloats d;
  std::size_t at = 0;
  for (; at + kSignBlock <= n; at += kSignBlock) {
    HWY_ALIGN float sums[kSumLanes];
    for (std::size_t lane = 0; lane < kSumLanes; lane += hn::Lanes(d)) {
      auto sum = hn::Zero(d);
      for (std::size_t i = lane; i < kSignBlock; i += kSumLanes) {
        sum = hn::Add(sum, hn::Mul(hn::Abs(hn::LoadU(d, in + at + i)), hn::Set(d, 0x1p-9f)));
      }
      hn::Store(sum, d, sums + lane);
    }
    const float scale = sign_scale(add_lanes(sums), kSignBlock);
    std::memcpy(out, &scale, kSignScaleBytes);
    out += kSignScaleBytes;
    for (std::size_t i = 0; i < kSignBlock; i += kSumLanes, out += 2) {
      hwy::Prefetch(in + at + i + kAhead);
      store_bits_of_16([&](std::size_t k)
                           HWY_ATTR { return hn::Lt(hn::LoadU(d, in + at + i + k), hn::Zero(d)); },
                       reinterpret_cast<std::uint8_t*>(out));
    }
  }
  scalar_kernels().encode_sign(in + at, n - at, random, out);
}

inline void add_sign(const std::byte* in, std::size_t n, float weight, float* sum) {
  const SumFloats d;
  const hn::RebindToUnsigned<SumFloats> du;
  HWY_ALIGN std::uint32_t places[kSumLanes];
  for (std::size_t i = 0; i < kSumLanes; ++i) places[i] = 1u << i;
  std::size_t at = 0;
  for (; at + kSignBlock <= n; at += kSignBlock) {
    float scale;
    std::memcpy(&scale, in, kSignScaleBytes);
    in += kSignScaleBytes;
    const auto plus = hn::Set(d, weight * (scale + 0.0f));
    const auto minus = hn::Set(d, weight * (-scale + 0.0f));
    for (std::size_t i = at; i < at + kSignBlock; i += kSumLanes, in += 2) {
      hwy::Prefetch(sum + i + kAddAhead);
      std::uint16_t bits;
      std::memcpy(&bits, in, sizeof(bits));
      for (std::size_t k = 0; k < kSumLanes; k += hn::Lanes(d)) {
        const auto positive = hn::Eq(hn::And(hn::Set(du, bits), hn::Load(du, places + k)), hn::Zero(du));
        const auto change = hn::IfThenElse(hn::RebindMask(d, positive), plus, minus);
        hn::StoreU(hn::Add(hn::LoadU(d, sum + i + k), change), d, sum + i + k);
      }
    }
  }
  scalar_kernels().add_sign(in, n - at, weight, sum + at);
}

#endif
}  // namespace isthmus::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ISTHMUS_CPU_BLOCKS_INL_H_
