// One commit of each optimizer over slices of the default size, 64 of them: more than the caches hold.
//
// `x_traffic` is the time of a loop that only reads and writes the same arrays (one addition an array and
// element), taken right before each commit, divided by the commit's: 1 is as fast as memory lets it be.

#include <chrono>

#include "bench/support.h"
#include "core/job_config.h"
#include "server/optimizer.h"

namespace isthmus::bench {
namespace {

constexpr std::size_t kSlices = 64;
constexpr std::size_t kSliceElements = 256 * 1024;
constexpr std::size_t kElements = kSlices * kSliceElements;

// What no optimizer of so many vectors can do without.
template <typename... Arrays>
void touch(const float* __restrict gradient, std::size_t n, Arrays* __restrict... arrays) {
  for (std::size_t i = 0; i < n; ++i) ((arrays[i] += gradient[i]), ...);
}

void touch(const float* gradient, std::span<float> parameters, std::span<const std::span<float>> state) {
  const std::size_t n = parameters.size();
  if (state.empty()) {
    touch(gradient, n, parameters.data());
  } else if (state.size() == 1) {
    touch(gradient, n, parameters.data(), state[0].data());
  } else {
    touch(gradient, n, parameters.data(), state[0].data(), state[1].data());
  }
}

double seconds(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

void commit(benchmark::State& state, core::OptimizerKind kind) {
  const auto optimizer = server::make_optimizer({.kind = kind});
  apps::BenchMemory<float> gradient(kElements), parameters(kElements);
  std::vector<apps::BenchMemory<float>> memory;
  for (std::size_t i = 0; i < optimizer->state_vectors(); ++i) memory.emplace_back(kElements);
  std::ranges::fill(gradient.span(), 1e-3f);
  std::ranges::fill(parameters.span(), 1.0f);
  double traffic = 0, taken = 0;
  std::uint64_t commits = 0;
  for (auto _ : state) {
    ++commits;
    double of_this = 0;
    for (std::size_t slice = 0; slice < kSlices; ++slice) {
      const auto part = [slice](apps::BenchMemory<float>& array) {
        return array.span().subspan(slice * kSliceElements, kSliceElements);
      };
      std::vector<std::span<float>> vectors;
      for (auto& array : memory) vectors.push_back(part(array));
      // Another slice's arrays, as cold as this one's.
      const std::size_t other = (slice + kSlices / 2) % kSlices * kSliceElements;
      std::vector<std::span<float>> cold;
      for (auto& array : memory) cold.push_back(array.span().subspan(other, kSliceElements));
      const auto start = std::chrono::steady_clock::now();
      touch(gradient.span().data() + other, parameters.span().subspan(other, kSliceElements), cold);
      const auto middle = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(optimizer->apply(part(parameters), part(gradient), vectors, 1e-3f, commits));
      const auto end = std::chrono::steady_clock::now();
      traffic += seconds(start, middle);
      of_this += seconds(middle, end);
    }
    taken += of_this;
    state.SetIterationTime(of_this);
  }
  state.counters["x_traffic"] = traffic / taken;
  count_input(state, kElements);
}

void add_all() {
  const auto names = core::names_of(core::OptimizerKind());
  for (std::size_t kind = 0; kind < names.size(); ++kind) {
    benchmark::RegisterBenchmark(("commit/" + std::string(names[kind])).c_str(), commit,
                                 static_cast<core::OptimizerKind>(kind))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace isthmus::bench

int main(int argc, char** argv) {
  isthmus::bench::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
