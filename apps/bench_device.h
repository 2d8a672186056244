// Measures the codecs over a CUDA device's memory, as bench_measure.h does those of the CPU.
//
// Times are the device's own (events), of what runs on it: a record is not copied to the host, but for the
// path that says so. Each run is timed right after a streaming read of the device's memory.
//
// Threads: one.
// Memory:  of the device, twice the input, two records and scratch; of the host, a record pinned, and while
//          one codec is measured a record and a decoded copy.
// Errors:  those of the device; kInternal when a codec refuses a record of its own.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/bench_choice.h"
#include "apps/bench_report.h"
#include "compression/cuda/device.h"
#include "isthmus/status.h"

namespace isthmus::apps {

class DeviceBench {
 public:
  // The device's memory and stream.
  Status open(std::size_t elements, std::span<const CodecChoice> codecs, std::uint64_t repeats);

  const std::string& device() const { return device_; }

  // Where the next input comes from.
  Status set_input(std::span<const float> input);

  Result<CodecRow> measure(const CodecChoice& codec);

  // As CodecBench::measure_delta.
  Result<PathRow> measure_delta(const CodecChoice& codec);

  // From a tensor on the device to a record in the host's memory, one at a time.
  Result<PathRow> measure_to_host(const CodecChoice& codec);

  double read_gb_per_s() const;  // REQUIRES: something was measured.

 private:
  class Encoding;

  Result<Pace> time(const std::function<Status()>& pass, const std::function<Status()>& prepare,
                    const std::function<Status()>& after);
  Result<double> seconds_of(const std::function<Status()>& work);

  std::string device_;
  std::uint64_t repeats_ = 1;
  std::span<const float> host_input_;
  compression::DeviceMemory input_, view_, record_, staged_, scratch_, outcome_, sink_;
  compression::PinnedMemory pinned_;
  compression::OwnedStream stream_;
  compression::OwnedEvent start_, end_;
  std::vector<double> reads_;
};

}  // namespace isthmus::apps
