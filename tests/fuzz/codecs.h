// All codecs that the config can name, on all tables of kernels that this CPU runs.
//
// Threads: one.  Memory: lives for ever.  Errors: none.

#pragma once

#include <memory>
#include <vector>

#include "compression/codec.h"
#include "compression/kernels/kernels.h"
#include "core/job_config.h"

namespace isthmus::fuzz {

inline const std::vector<const compression::Kernels*>& tables() {
  static const auto* const tables =
      new std::vector<const compression::Kernels*>(compression::available_kernels());
  return *tables;
}

// `which` chooses the codec, `how` its options.
inline core::CodecConfig codec_config(std::uint8_t which, std::uint8_t how) {
  constexpr double kKeeps[] = {1.0, 0.5, 0.1, 0.01};
  core::CodecConfig config;
  config.kind = static_cast<core::CodecKind>(which % core::names_of(core::CodecKind{}).size());
  config.keep = kKeeps[how % 4];
  config.values = static_cast<core::KeptValues>(how / 4 % core::names_of(core::KeptValues{}).size());
  config.rotate = how / 16 % 2 == 1;
  config.rounding = static_cast<core::Rounding>(how / 32 % core::names_of(core::Rounding{}).size());
  return config;
}

}  // namespace isthmus::fuzz
