// The kernels in Highway: compiled once for each instruction set, the best chosen at run time.
//
// Each loop does whole vectors and leaves the last few elements to the scalar table, so a tail cannot differ.
// Highway's own one-lane target reads floats only where they are aligned: there the scalar table stands in.

#include <algorithm>
#include <bit>
#include <cstring>

#include "compression/kernels/float16.h"
#include "compression/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/kernels/cpu_kernels.cc"  // NOLINT: Highway's name
#include <hwy/foreach_target.h>                                  // Must come before highway.h.

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace isthmus::compression::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const Kernels* table() { return &scalar_kernels(); }

#else
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Highway's fp16 conversions are IEEE where the hardware does them; its emulation for older targets is not.
// ISTHMUS_NATIVE_F16 is redefined for each target, hence no include guard.
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
using Chars = hn::Rebind<std::int8_t, Floats>;
using Float = hn::VFromD<Floats>;
using Uint = hn::VFromD<Uints>;

template <typename T, T kExponent>
HWY_INLINE bool finite(const std::byte* in, std::size_t n, bool (*tail)(const std::byte*, std::size_t)) {
  const hn::ScalableTag<T> d;
  const auto exponent = hn::Set(d, kExponent);
  auto bad = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto bits = hn::LoadU(d, reinterpret_cast<const T*>(in + i * sizeof(T)));
    bad = hn::Or(bad, hn::VecFromMask(d, hn::Eq(hn::And(bits, exponent), exponent)));
  }
  return hn::AllTrue(d, hn::Eq(bad, hn::Zero(d))) && tail(in + i * sizeof(T), n - i);
}

bool finite_f32(const std::byte* in, std::size_t n) {
  return finite<std::uint32_t, 0x7f800000u>(in, n, scalar_kernels().finite_f32);
}
bool finite_f16(const std::byte* in, std::size_t n) {
  return finite<std::uint16_t, kHalfExponent>(in, n, scalar_kernels().finite_f16);
}
bool finite_bf16(const std::byte* in, std::size_t n) {
  return finite<std::uint16_t, kBf16Exponent>(in, n, scalar_kernels().finite_bf16);
}

float max_abs(const float* in, std::size_t n) {
  const Floats d;
  auto largest = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    largest = hn::Max(largest, hn::Abs(hn::LoadU(d, in + i)));
  }
  return std::max(hn::GetLane(hn::MaxOfLanes(d, largest)), scalar_kernels().max_abs(in + i, n - i));
}

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

void to_f16(const float* in, std::size_t n, std::byte* out) {
  const Floats d;
  const Uints du;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
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

void to_bf16(const float* in, std::size_t n, std::byte* out) {
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

void to_i8(const float* in, std::size_t n, float inverse, std::byte* out) {
  const Floats d;
  const auto high = hn::Set(d, 127.0f);
  const auto low = hn::Set(d, -127.0f);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const Float scaled = hn::Mul(hn::LoadU(d, in + i), hn::Set(d, inverse));
    const auto rounded = hn::NearestInt(hn::Min(hn::Max(scaled, low), high));
    hn::StoreU(hn::DemoteTo(Chars(), rounded), Chars(), reinterpret_cast<std::int8_t*>(out + i));
  }
  scalar_kernels().to_i8(in + i, n - i, inverse, out + i);
}

HWY_INLINE void add(Float value, float weight, float* sum) {
  const Floats d;
  const Float decoded = hn::Add(value, hn::Zero(d));
  hn::StoreU(hn::Add(hn::LoadU(d, sum), hn::Mul(hn::Set(d, weight), decoded)), d, sum);
}

void add_f32(const std::byte* in, std::size_t n, float weight, float* sum) {
  const Floats d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    add(hn::LoadU(d, reinterpret_cast<const float*>(in + i * 4)), weight, sum + i);
  }
  scalar_kernels().add_f32(in + i * 4, n - i, weight, sum + i);
}

HWY_INLINE Uint load_halves(const std::byte* in) {
  return hn::PromoteTo(Uints(), hn::LoadU(Shorts(), reinterpret_cast<const std::uint16_t*>(in)));
}

HWY_INLINE Float from_f16(const std::byte* in) {
  const Floats d;
#if ISTHMUS_NATIVE_F16
  const hn::Rebind<hwy::float16_t, Floats> dh;
  const auto half = hn::LoadU(Shorts(), reinterpret_cast<const std::uint16_t*>(in));
  return hn::PromoteTo(d, hn::BitCast(dh, half));
#else
  const Uints du;
  const Uint bits = load_halves(in);
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

void add_f16(const std::byte* in, std::size_t n, float weight, float* sum) {
  const Floats d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) add(from_f16(in + i * 2), weight, sum + i);
  scalar_kernels().add_f16(in + i * 2, n - i, weight, sum + i);
}

void add_bf16(const std::byte* in, std::size_t n, float weight, float* sum) {
  const Floats d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    add(hn::BitCast(d, hn::ShiftLeft<16>(load_halves(in + i * 2))), weight, sum + i);
  }
  scalar_kernels().add_bf16(in + i * 2, n - i, weight, sum + i);
}

void add_i8(const std::byte* in, std::size_t n, float scale, float weight, float* sum) {
  const Floats d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto codes = hn::LoadU(Chars(), reinterpret_cast<const std::int8_t*>(in + i));
    add(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(Ints(), codes)), hn::Set(d, scale)), weight, sum + i);
  }
  scalar_kernels().add_i8(in + i, n - i, scale, weight, sum + i);
}

std::size_t select(const float* in, std::size_t n, float threshold, std::uint32_t* out,
                   std::size_t capacity) {
  const Floats d;
  const Uints du;
  HWY_ALIGN std::uint32_t last[HWY_MAX_BYTES / sizeof(std::uint32_t)];
  std::size_t found = 0;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto large = hn::Ge(hn::Abs(hn::LoadU(d, in + i)), hn::Set(d, threshold));
    if (hn::AllFalse(d, large)) continue;
    const auto indices = hn::Iota(du, static_cast<std::uint32_t>(i));
    const auto mask = hn::RebindMask(du, large);
    if (found + hn::Lanes(d) <= capacity) {  // A compressing store writes a whole vector.
      found += hn::CompressStore(indices, mask, du, out + found);
    } else {
      const std::size_t more = hn::CompressStore(indices, mask, du, last);
      if (found < capacity) std::copy_n(last, std::min(more, capacity - found), out + found);
      found += more;
    }
  }
  const std::size_t stored = std::min(found, capacity);
  const std::size_t more = scalar_kernels().select(in + i, n - i, threshold, out + stored, capacity - stored);
  for (std::size_t k = stored; k < std::min(found + more, capacity); ++k) {
    out[k] += static_cast<std::uint32_t>(i);
  }
  return found + more;
}

}  // namespace

const Kernels* table() {
  static const Kernels kernels{
      .name = hwy::TargetName(HWY_TARGET),
      .finite_f32 = finite_f32,
      .finite_f16 = finite_f16,
      .finite_bf16 = finite_bf16,
      .max_abs = max_abs,
      .to_f16 = to_f16,
      .to_bf16 = to_bf16,
      .to_i8 = to_i8,
      .add_f32 = add_f32,
      .add_f16 = add_f16,
      .add_bf16 = add_bf16,
      .add_i8 = add_i8,
      .select = select,
  };
  return &kernels;
}

#endif
}  // namespace isthmus::compression::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace isthmus::compression {
namespace {
HWY_EXPORT(table);
}  // namespace

const Kernels& best_kernels() noexcept { return *HWY_DYNAMIC_DISPATCH(table)(); }

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> tables{&scalar_kernels()};
  const auto add = [&](const Kernels* kernels) {
    if (kernels != tables.front()) tables.push_back(kernels);
  };
  if constexpr ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0) {  // Then Highway makes no dispatch table.
    add(&best_kernels());
  } else {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::ChosenTarget chosen;
      chosen.Update(target);
      add(HWY_DISPATCH_TABLE(table)[chosen.GetIndex()]());
    }
  }
  return tables;
}

}  // namespace isthmus::compression
#endif  // HWY_ONCE
