// Measures codecs, and the steps around them, on one input.
//
// Threads: one.
// Memory:  three times the input and a record, all of it touched before anything is timed.
// Errors:  kInternal when a codec refuses a record of its own.

#pragma once

#include <memory>
#include <span>
#include <string>

#include "apps/bench_choice.h"
#include "apps/bench_memory.h"
#include "apps/bench_report.h"
#include "apps/bench_timer.h"
#include "isthmus/status.h"

namespace isthmus::apps {

// ||in - decoded||^2 / ||in||^2; 0 for zeros.
double nmse_of(std::span<const float> in, std::span<const float> decoded);

class CodecBench {
 public:
  // The record may take as much as any of `codecs` writes at most.
  CodecBench(std::size_t elements, std::span<const CodecChoice> codecs);

  // Where the next input goes. What was measured is forgotten.
  std::span<float> input() { return input_.span(); }

  Result<CodecRow> measure(const CodecChoice& codec, const BackendChoice& backend, BenchTimer& timer);

  // What a sender does for one sync: the change since the last one, encoded, and the view moved by what the
  // receiver will decode.
  Result<PathRow> measure_delta(const CodecChoice& codec, const BackendChoice& backend, BenchTimer& timer);

  // Finding what is above a threshold that lets `keep` of the input pass, and writing down where.
  PathRow measure_select(double keep, const BackendChoice& backend, BenchTimer& timer);

  // Estimating that threshold from a sample. REQUIRES: at least kSampleElements (compression/threshold.h).
  PathRow measure_estimate(double keep, BenchTimer& timer);

  // std::nth_element for the same threshold, exactly: what a codec without an estimate would do. The copy of
  // all magnitudes that it needs is not counted.
  PathRow measure_nth_element(double keep, BenchTimer& timer);

  PathRow measure_copy(BenchTimer& timer);

 private:
  float threshold_of(double keep);

  BenchMemory<float> input_;
  BenchMemory<float> sum_;
  BenchMemory<float> work_;
  BenchMemory<std::byte> record_;
};

}  // namespace isthmus::apps
