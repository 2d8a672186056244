// randk on a device: a block of threads takes a block of values.

#include "compression/cuda/device_kernels.h"
#include "compression/cuda/kept_block.cuh"
#include "compression/cuda/runtime.cuh"
#include "compression/randk_codec.h"

namespace isthmus::compression {
namespace {

// A record, and what its places are among.
struct Sparse {
  RandomNumbers numbers;
  core::KeptValues values;
  std::uint64_t count;
  std::uint64_t elements;
};

// As draw_places() in randk_codec.cc.
__device__ std::uint64_t place_of(const Sparse& record, std::uint64_t j) {
  const core::PhiloxCounter words =
      core::philox4x32(record.numbers.counter(RandomUse::kPlaces, j / 4), record.numbers.philox_key());
  const std::uint64_t begin = j * record.elements / record.count;
  const std::uint64_t end = (j + 1) * record.elements / record.count;
  // A constant index each, so that the words stay in registers.
  const std::uint32_t word = j % 4 == 0 ? words[0] : j % 4 == 1 ? words[1] : j % 4 == 2 ? words[2] : words[3];
  return begin + ((end - begin) * word >> 32);
}

__device__ std::byte* block_at(const Sparse& record, std::byte* blocks) {
  return blocks + std::uint64_t{blockIdx.x} * kept_block_bytes(record.values, kKeptBlock);
}

__device__ unsigned length_of_block(const Sparse& record) {
  const std::uint64_t left = record.count - std::uint64_t{blockIdx.x} * kKeptBlock;
  return static_cast<unsigned>(smaller<std::uint64_t>(left, kKeptBlock));
}

__global__ void __launch_bounds__(kKeptBlock)
    encode_places(Sparse record, const float* values, const float* view, float* moved, std::byte* blocks,
                  const EncodeOutcome* outcome) {
  if (outcome->refused != 0) return;
  const unsigned n = length_of_block(record);
  std::uint64_t place = 0;
  float value = 0.0f;
  if (threadIdx.x < n) {
    place = place_of(record, std::uint64_t{blockIdx.x} * kKeptBlock + threadIdx.x);
    value = view == nullptr ? values[place] : values[place] - view[place];
  }
  const float decoded = write_kept(record.values, value, n, block_at(record, blocks));
  // Where the two are not one array, `moved` is a copy of the view.
  if (moved != nullptr && threadIdx.x < n) add_decoded(decoded, 1.0f, moved[place]);
}

__global__ void write_header(Sparse record, std::byte kind, std::uint64_t bytes, std::byte* to,
                             EncodeOutcome* outcome) {
  write_numbers(record.numbers, to);
  to[kRandkKindAt] = kind;
  store_unaligned(to + kRandkKindAt + 1, static_cast<std::uint32_t>(record.count));
  outcome->bytes = bytes;
}

__global__ void __launch_bounds__(kKeptBlock)
    add_places(Sparse record, const std::byte* blocks, float weight, float* sum) {
  const unsigned n = length_of_block(record);
  const std::byte* in = blocks + std::uint64_t{blockIdx.x} * kept_block_bytes(record.values, kKeptBlock);
  const float decoded = read_kept(record.values, in, n);
  if (threadIdx.x >= n) return;
  sum[place_of(record, std::uint64_t{blockIdx.x} * kKeptBlock + threadIdx.x)] += weight * decoded;
}

class RandkKernels final : public DeviceKernels {
 public:
  explicit RandkKernels(const core::CodecConfig& config) : config_(config) {}

  std::size_t scratch_bytes(std::size_t) const override { return 0; }

  Status encode(const EncodeJob& job) const override {
    const Change& change = job.change;
    ISTHMUS_RETURN_IF_ERROR(look_for_infinities(change, job.outcome, job.stream));
    ISTHMUS_RETURN_IF_ERROR(copy_device_view(change, job.stream));
    const std::uint64_t count = kept_count(config_.keep, change.size());
    const Sparse record{RandomNumbers::of(job.state), config_.values, count, change.size()};
    const std::uint64_t bytes = kRandkHeaderBytes + kept_bytes(config_.values, count);
    ISTHMUS_RETURN_IF_ERROR(launch(
        encode_places, blocks_of(count, kKeptBlock), kKeptBlock, job.stream, record, change.values.data(),
        change.is_difference() ? change.view.data() : nullptr,
        change.moved.empty() ? nullptr : change.moved.data(), job.record + kRandkHeaderBytes, job.outcome));
    return launch(write_header, 1, 1, job.stream, record, kept_kind(config_.values), bytes, job.record,
                  job.outcome);
  }

  Status add(const AddJob& job) const override {
    ISTHMUS_RETURN_IF_ERROR(zero_sum(job));
    const Sparse record{job.numbers, job.values, job.count, job.sum.size()};
    return launch(add_places, blocks_of(job.count, kKeptBlock), kKeptBlock, job.stream, record,
                  job.record + kRandkHeaderBytes, job.weight, job.sum.data());
  }

 private:
  core::CodecConfig config_;
};

}  // namespace

std::unique_ptr<const DeviceKernels> make_randk_kernels(const core::CodecConfig& config) {
  return std::make_unique<RandkKernels>(config);
}

}  // namespace isthmus::compression
