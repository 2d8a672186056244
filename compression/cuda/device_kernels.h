// One codec's kernels: what an encoder and a decoder enqueue.
//
// Threads: immutable; any thread whose current device the memory is of.
// Memory:  none of its own: the jobs name it.
// Errors:  those of the CUDA runtime; what a job finds out, it leaves in its outcome.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "compression/codec.h"
#include "compression/cuda/device.h"
#include "compression/random_numbers.h"

namespace isthmus::compression {

// What an encoding leaves on the device.
struct EncodeOutcome {
  std::uint64_t bytes = 0;
  float threshold = 0.0f;     // topk: of the state.
  std::uint32_t refused = 0;  // Not 0: a difference was not finite.
};

// Everything is device memory. Record, outcome and scratch are on boundaries of 16 bytes.
struct EncodeJob {
  Change change;
  CodecState state;
  std::byte* record;
  EncodeOutcome* outcome;
  std::byte* scratch;
  DeviceStream stream;
};

// A record that has been checked, and what its header says.
struct AddJob {
  const std::byte* record = nullptr;
  const std::uint64_t* blocks = nullptr;  // topk: where each of its blocks begins in the record.
  std::uint64_t count = 0;                // Sparse ones: of values.
  core::KeptValues values{};
  RandomNumbers numbers{};  // Of those that have them.
  float weight = 1.0f;
  bool set = false;  // sum = decoded, and the weight is 1.
  std::span<float> sum{};
  DeviceStream stream = nullptr;
};

class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  virtual std::size_t scratch_bytes(std::size_t elements) const = 0;
  virtual Status encode(const EncodeJob& job) const = 0;
  virtual Status add(const AddJob& job) const = 0;
};

std::unique_ptr<const DeviceKernels> make_dense_kernels(const core::CodecConfig& config);
std::unique_ptr<const DeviceKernels> make_topk_kernels(const core::CodecConfig& config);
std::unique_ptr<const DeviceKernels> make_randk_kernels(const core::CodecConfig& config);
// nullptr in a build without CUDA.
std::unique_ptr<const DeviceKernels> make_device_kernels(const core::CodecConfig& config);

// Enqueues a look at all differences, which sets `refused` where one is not finite. Nothing to do where there
// is no view.
Status look_for_infinities(const Change& change, EncodeOutcome* outcome, DeviceStream stream);

// Enqueues view -> moved, where they are two arrays.
Status copy_device_view(const Change& change, DeviceStream stream);

// Enqueues zeros for a job that sets its sum.
Status zero_sum(const AddJob& job);

}  // namespace isthmus::compression
