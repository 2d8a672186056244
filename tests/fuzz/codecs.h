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

// `which` chooses the codec, `keep` the share of a sparse one.
inline core::CodecConfig codec_config(std::uint8_t which, std::uint8_t keep) {
  constexpr double kKeeps[] = {1.0, 0.5, 0.1, 0.01};
  core::CodecConfig config;
  config.kind = static_cast<core::CodecKind>(which % core::names_of(core::CodecKind{}).size());
  config.keep = kKeeps[keep % std::size(kKeeps)];
  return config;
}

}  // namespace isthmus::fuzz
