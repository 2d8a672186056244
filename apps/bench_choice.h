// Which codecs and backends `isthmus bench codec` measures: the config's own list of codecs, the tables of
// kernels of this CPU and its CUDA device, so that a new one is measured as soon as there is one.
//
// Threads: pure functions.  Memory: values.  Errors: kInvalidArgument, with what to write instead.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "compression/kernels/kernels.h"
#include "core/job_config.h"
#include "isthmus/status.h"

namespace isthmus::apps {

struct CodecChoice {
  std::string name;  // As asked for.
  core::CodecConfig config;
};

// Each of `texts` is what the config file may say: "int8" or "{ codec: topk, keep: 1% }"; no text: every
// codec. One of a single word that has a `keep` is taken once for each of `keeps` (its name is then "topk
// 0.1%", if there are several), or with the default.
Result<std::vector<CodecChoice>> choose_codecs(std::span<const std::string> texts,
                                               std::span<const double> keeps);

// Whether the size of its records depends on `keep`.
bool has_keep(const core::CodecConfig& config);

struct BackendChoice {
  std::string name;  // "cpu": the best table of this CPU; of the others, their own names; "cuda".
  const compression::Kernels* kernels = nullptr;  // nullptr: the CUDA device.
};

// "cpu", "scalar" or another table's name, "cuda", or "all" that there are; no text: "cpu".
Result<std::vector<BackendChoice>> choose_backends(std::span<const std::string> texts);

}  // namespace isthmus::apps
