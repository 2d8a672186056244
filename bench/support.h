// What the micro-benchmarks share: their input, and the passes over memory that everything is compared with.
//
// Threads: one.  Memory: what a benchmark asks for.  Errors: none.

#pragma once

#include <benchmark/benchmark.h>

#include <cstring>
#include <string>

#include "apps/bench_inputs.h"
#include "apps/bench_memory.h"
#include "apps/stream_read.h"
#include "core/check.h"

namespace isthmus::bench {

// In a cache of 512 KiB, and in none.
inline constexpr std::size_t kSizes[] = {std::size_t{1} << 16, std::size_t{1} << 23};

inline apps::BenchMemory<float> gaussian(std::size_t elements) {
  apps::BenchMemory<float> memory(elements);
  ISTHMUS_CHECK(apps::fill_input("gaussian", memory.span()).ok());
  return memory;
}

// Bytes a second are of input: 4 for each element, whatever else is touched.
inline void count_input(benchmark::State& state, std::size_t elements) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(elements * sizeof(float)));
}

inline void stream_read(benchmark::State& state, std::size_t elements) {
  const auto in = gaussian(elements);
  for (auto _ : state) benchmark::DoNotOptimize(apps::stream_read(std::as_bytes(in.span())));
  count_input(state, elements);
}

inline void copy(benchmark::State& state, std::size_t elements) {
  const auto in = gaussian(elements);
  apps::BenchMemory<float> out(elements);
  for (auto _ : state) {
    std::memcpy(out.span().data(), in.span().data(), in.span().size_bytes());
    benchmark::ClobberMemory();
  }
  count_input(state, elements);
}

// `body(state, elements)` for each size, as NAME/ELEMENTS.
template <typename Body>
void add(const std::string& name, Body body) {
  for (const std::size_t elements : kSizes) {
    benchmark::RegisterBenchmark((name + "/" + std::to_string(elements)).c_str(),
                                 [body, elements](benchmark::State& state) { body(state, elements); });
  }
}

inline void add_yardsticks() {
  add("stream_read", stream_read);
  add("memcpy", copy);
}

inline int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace isthmus::bench
