// The kernels in Highway: compiled once for each instruction set, the best chosen at run time.
//
// Highway's own one-lane target reads floats only where they are aligned: there the scalar table stands in.

#include "compression/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/kernels/cpu_kernels.cc"  // NOLINT: Highway's name
#include <hwy/foreach_target.h>                                  // Must come before highway.h.

#include <hwy/highway.h>

#include "compression/kernels/cpu_blocks-inl.h"
#include "compression/kernels/cpu_floats-inl.h"
#include "compression/kernels/cpu_mixing-inl.h"

HWY_BEFORE_NAMESPACE();
namespace isthmus::compression::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const Kernels* table() { return &scalar_kernels(); }

#else

const Kernels* table() {
  static const Kernels kernels{
      .name = hwy::TargetName(HWY_TARGET),
      .finite_f32 = finite_f32,
      .subtract = subtract,
      .stream = stream,
      .finish_streaming = finish_streaming,
      .to_f16 = to_f16,
      .to_bf16 = to_bf16,
      .add_f32 = add_f32,
      .add_f16 = add_f16,
      .add_bf16 = add_bf16,
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
