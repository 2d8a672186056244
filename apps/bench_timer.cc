#include "apps/bench_timer.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "apps/stream_read.h"
#include "core/check.h"

namespace isthmus::apps {
namespace {

constexpr double kGiga = 1e9;

// Of this thread: who else has the core meanwhile is not the pass's fault.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds_of(const std::function<void()>& work) {
  const double start = thread_seconds();
  work();
  return std::max(thread_seconds() - start, 1e-9);  // Nothing is faster than the clock can tell.
}

}  // namespace

double median(std::vector<double> values) {
  ISTHMUS_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Pace pace_of(std::uint64_t bytes, std::span<const double> read_seconds, std::span<const double> seconds) {
  ISTHMUS_CHECK(read_seconds.size() == seconds.size());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < seconds.size(); ++i) ratios.push_back(read_seconds[i] / seconds[i]);
  const double typical = median({seconds.begin(), seconds.end()});
  return {static_cast<double>(bytes) / typical / kGiga, median(std::move(ratios))};
}

BenchTimer::BenchTimer(std::span<const float> input, std::uint64_t repeats, core::Duration time)
    : input_(input), repeats_(std::max<std::uint64_t>(repeats, 1)), time_(time) {}

Pace BenchTimer::measure(const std::function<void()>& pass, const std::function<void()>& prepare) {
  const auto end = std::chrono::steady_clock::now() + time_;
  std::vector<double> reads;
  std::vector<double> passes;
  if (prepare) prepare();
  pass();
  do {
    if (prepare) prepare();
    reads.push_back(seconds_of([this] { seen_ ^= stream_read(std::as_bytes(input_)); }));
    passes.push_back(seconds_of(pass));
  } while (passes.size() < repeats_ && std::chrono::steady_clock::now() < end);
  reads_.insert(reads_.end(), reads.begin(), reads.end());
  return pace_of(input_.size_bytes(), reads, passes);
}

double BenchTimer::read_gb_per_s() const {
  return static_cast<double>(input_.size_bytes()) / median(reads_) / kGiga;
}

}  // namespace isthmus::apps
