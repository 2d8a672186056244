#include "compression/kept_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compression/int8_codec.h"
#include "compression/kernels/blocks.h"

namespace isthmus::compression {
namespace {

using core::KeptValues;

static_assert(kKeptBlock == kInt8Block);

CodecId id_of(KeptValues values) noexcept {
  switch (values) {
    case KeptValues::kFp32: return CodecId::kFp32;
    case KeptValues::kFp16: return CodecId::kFp16;
    case KeptValues::kInt8: break;
  }
  return CodecId::kInt8;
}

}  // namespace

std::size_t kept_count(double keep, std::size_t elements) noexcept {
  if (elements == 0) return 0;
  const double share = std::round(keep * static_cast<double>(elements));
  return static_cast<std::size_t>(std::clamp(share, 1.0, static_cast<double>(elements)));
}

std::byte kept_kind(KeptValues values) noexcept { return static_cast<std::byte>(id_of(values)); }

std::optional<KeptValues> read_kept_kind(std::byte kind) noexcept {
  for (const KeptValues values : {KeptValues::kFp32, KeptValues::kFp16, KeptValues::kInt8}) {
    if (kept_kind(values) == kind) return values;
  }
  return std::nullopt;
}

std::size_t kept_bytes(KeptValues values, std::size_t n) noexcept {
  switch (values) {
    case KeptValues::kFp32: return 4 * n;
    case KeptValues::kFp16: return 2 * n;
    case KeptValues::kInt8: break;
  }
  return n + (n / kKeptBlock + (n % kKeptBlock != 0)) * kInt8ScaleBytes;
}

float least_kept(KeptValues values) noexcept {
  switch (values) {
    case KeptValues::kFp32: return std::numeric_limits<float>::denorm_min();
    case KeptValues::kFp16: return kHalfSmallest;
    case KeptValues::kInt8: break;
  }
  return std::numeric_limits<float>::min();
}

void encode_kept(KeptValues values, const Kernels& kernels, const float* in, std::size_t n,
                 std::byte* out) noexcept {
  if (values == KeptValues::kFp32) {
    std::memcpy(out, in, n * sizeof(float));
  } else if (values == KeptValues::kFp16) {
    kernels.to_f16(in, n, out);
  } else {
    kernels.encode_i8(in, n, nullptr, out);
  }
}

bool check_kept(KeptValues values, const Kernels& kernels, const std::byte* in, std::size_t n) noexcept {
  if (values == KeptValues::kFp32) return kernels.finite_f32(in, n);
  return values == KeptValues::kFp16 || n == 0 || is_int8_scale(in);
}

void decode_kept(KeptValues values, const Kernels& kernels, const std::byte* in, std::size_t n,
                 float* out) noexcept {
  std::fill_n(out, n, 0.0f);
  const Kernels::Add add = values == KeptValues::kFp32   ? kernels.add_f32
                           : values == KeptValues::kFp16 ? kernels.add_f16
                                                         : kernels.add_i8;
  add(in, n, 1.0f, out);
}

}  // namespace isthmus::compression
