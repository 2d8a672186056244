// The dense codecs on a device: a warp takes a block, and a rotation takes a block of threads.

#include <limits>

#include "compression/cuda/dense_formats.cuh"
#include "compression/cuda/device_kernels.h"
#include "compression/cuda/runtime.cuh"
#include "compression/random_numbers.h"

namespace isthmus::compression {
namespace {

// A part of a change: all that a kernel needs.
struct EncodePart {
  const float* values;
  const float* view;    // nullptr: none.
  float* moved;         // nullptr: nobody asks.
  std::uint64_t first;  // Element of the whole; rotations are from 0 on.
  std::uint64_t elements;
  std::byte* body;
  RandomNumbers numbers;
  bool stochastic;
  EncodeOutcome* outcome;
};

struct AddPart {
  const std::byte* body;
  std::uint64_t elements;
  float* sum;
  float weight;
  bool set;
  RandomNumbers numbers;
};

// Where `moved` is the view itself, a look at all differences came before.
__device__ bool is_refused(const EncodePart& part) {
  return part.moved != nullptr && part.moved == part.view && part.outcome->refused != 0;
}

__device__ float difference_at(const EncodePart& part, std::uint64_t i) {
  const float value = part.view == nullptr ? part.values[i] : part.values[i] - part.view[i];
  if (part.view != nullptr && !is_finite(value)) part.outcome->refused = 1;
  return value;
}

__device__ void move_view(const EncodePart& part, std::uint64_t i, float decoded) {
  float value = part.view[i];
  add_decoded(decoded, 1.0f, value);
  part.moved[i] = value;
}

__device__ void add_to_sum(const AddPart& part, std::uint64_t i, float decoded) {
  float value = part.set ? 0.0f : part.sum[i];
  add_decoded(decoded, part.weight, value);
  part.sum[i] = value;
}

// 16 bits for each of `elements`, from element `first` of the whole on, by one of `threads` threads.
__device__ void draw_rounding(const EncodePart& part, std::uint64_t first, unsigned elements, unsigned thread,
                              unsigned threads, std::uint32_t* words) {
  for (unsigned block = thread; block < elements / 8; block += threads) {
    const core::PhiloxCounter drawn = core::philox4x32(
        part.numbers.counter(RandomUse::kRounding, first / 8 + block), part.numbers.philox_key());
    for (unsigned i = 0; i < 4; ++i) words[4 * block + i] = drawn[i];
  }
}

template <typename Format>
__global__ void __launch_bounds__(kDenseThreads) encode_blocks(EncodePart part) {
  constexpr unsigned elements = Format::kElements;
  __shared__ std::uint32_t random_of_warps[kDenseWarps][elements / 2];
  if (is_refused(part)) return;
  const std::uint64_t block = std::uint64_t{blockIdx.x} * kDenseWarps + warp_of_block();
  const std::uint64_t first = block * elements;
  if (first >= part.elements) return;
  const auto length = static_cast<unsigned>(smaller<std::uint64_t>(elements, part.elements - first));
  Rows<elements> rows;
  for (unsigned r = 0; r < elements / kWarp; ++r) {
    const unsigned i = r * kWarp + lane_of_warp();
    rows[r] = i < length ? difference_at(part, first + i) : 0.0f;
  }
  std::uint32_t* random = nullptr;
  if (part.stochastic) {
    random = random_of_warps[warp_of_block()];
    draw_rounding(part, part.first + first, elements, lane_of_warp(), kWarp, random);
    __syncwarp();
  }
  Format::encode(rows, length, random, part.body + block * Format::bytes(elements));
  if (part.moved == nullptr) return;
  for (unsigned r = 0; r < elements / kWarp; ++r) {
    const unsigned i = r * kWarp + lane_of_warp();
    if (i < length) move_view(part, first + i, rows[r]);
  }
}

template <typename Format>
__global__ void __launch_bounds__(kDenseThreads) add_blocks(AddPart part) {
  constexpr unsigned elements = Format::kElements;
  const std::uint64_t block = std::uint64_t{blockIdx.x} * kDenseWarps + warp_of_block();
  const std::uint64_t first = block * elements;
  if (first >= part.elements) return;
  const auto length = static_cast<unsigned>(smaller<std::uint64_t>(elements, part.elements - first));
  Rows<elements> rows;
  Format::decode(part.body + block * Format::bytes(elements), length, rows);
  for (unsigned r = 0; r < elements / kWarp; ++r) {
    const unsigned i = r * kWarp + lane_of_warp();
    if (i < length) add_to_sum(part, first + i, rows[r]);
  }
}

using Rotation = NibbleFormat<Int4Nibble>;
constexpr unsigned kRotationBytes = kRotated / kNibbleBlock * Rotation::bytes(kNibbleBlock);
constexpr unsigned kBlocksOfWarp = kRotated / kNibbleBlock / kDenseWarps;
constexpr float kNorm = 0x1p-5f;  // 1 / sqrt(1024), as in int4_codec.cc.
constexpr float kLargestRotated = 0x1p117f;

// The stages one after another, each element's sum and difference as in the specification.
__device__ void hadamard(float* x) {
  for (unsigned step = 1; step < kRotated; step *= 2) {
    for (unsigned pair = threadIdx.x; pair < kRotated / 2; pair += kDenseThreads) {
      const unsigned i = pair / step * 2 * step + pair % step;
      const float a = x[i];
      const float b = x[i + step];
      x[i] = a + b;
      x[i + step] = a - b;
    }
    __syncthreads();
  }
}

// The signs of rotation `group` of the whole: bit i % 32 of word i / 32.
__device__ void draw_signs(const RandomNumbers& numbers, std::uint64_t group, std::uint32_t* words) {
  constexpr unsigned blocks = kRotated / 128;
  if (threadIdx.x < blocks) {
    const core::PhiloxCounter drawn = core::philox4x32(
        numbers.counter(RandomUse::kRotation, group * blocks + threadIdx.x), numbers.philox_key());
    for (unsigned i = 0; i < 4; ++i) words[4 * threadIdx.x + i] = drawn[i];
  }
  __syncthreads();
}

__device__ bool is_minus(const std::uint32_t* signs, unsigned i) {
  return (signs[i / 32] >> (i % 32) & 1u) != 0;
}

__global__ void __launch_bounds__(kDenseThreads) encode_rotated(EncodePart part) {
  __shared__ float x[kRotated];
  __shared__ std::uint32_t signs[kRotated / 32];
  __shared__ std::uint32_t random[kRotated / 2];
  if (is_refused(part)) return;
  const std::uint64_t group = blockIdx.x;
  const std::uint64_t first = group * kRotated;
  draw_signs(part.numbers, group, signs);
  if (part.stochastic) draw_rounding(part, first, kRotated, threadIdx.x, kDenseThreads, random);
  for (unsigned i = threadIdx.x; i < kRotated; i += kDenseThreads)
    x[i] = flipped(difference_at(part, first + i), is_minus(signs, i), kLargestRotated, kNorm);
  __syncthreads();
  hadamard(x);
  for (unsigned k = 0; k < kBlocksOfWarp; ++k) {
    const unsigned block = warp_of_block() * kBlocksOfWarp + k;
    const unsigned at = block * kNibbleBlock;
    Rows<kNibbleBlock> rows;
    for (unsigned r = 0; r < kNibbleBlock / kWarp; ++r) rows[r] = x[at + r * kWarp + lane_of_warp()];
    Rotation::encode(rows, kNibbleBlock, part.stochastic ? random + at / 2 : nullptr,
                     part.body + group * kRotationBytes + block * Rotation::bytes(kNibbleBlock));
    for (unsigned r = 0; r < kNibbleBlock / kWarp; ++r) {
      float decoded = 0.0f;
      add_decoded(rows[r], kNorm, decoded);
      x[at + r * kWarp + lane_of_warp()] = decoded;
    }
  }
  if (part.moved == nullptr) return;
  __syncthreads();
  hadamard(x);
  for (unsigned i = threadIdx.x; i < kRotated; i += kDenseThreads)
    move_view(part, first + i, flipped(x[i], is_minus(signs, i), std::numeric_limits<float>::max(), 1.0f));
}

__global__ void __launch_bounds__(kDenseThreads) add_rotated(AddPart part) {
  __shared__ float x[kRotated];
  __shared__ std::uint32_t signs[kRotated / 32];
  const std::uint64_t group = blockIdx.x;
  draw_signs(part.numbers, group, signs);
  for (unsigned k = 0; k < kBlocksOfWarp; ++k) {
    const unsigned block = warp_of_block() * kBlocksOfWarp + k;
    Rows<kNibbleBlock> rows;
    Rotation::decode(part.body + group * kRotationBytes + block * Rotation::bytes(kNibbleBlock), kNibbleBlock,
                     rows);
    for (unsigned r = 0; r < kNibbleBlock / kWarp; ++r) {
      float decoded = 0.0f;
      add_decoded(rows[r], kNorm, decoded);
      x[block * kNibbleBlock + r * kWarp + lane_of_warp()] = decoded;
    }
  }
  __syncthreads();
  hadamard(x);
  for (unsigned i = threadIdx.x; i < kRotated; i += kDenseThreads)
    add_to_sum(part, group * kRotated + i,
               flipped(x[i], is_minus(signs, i), std::numeric_limits<float>::max(), 1.0f));
}

// The key and count of a record that has them, and how long it is.
__global__ void write_ends(std::byte* record, bool has_key, RandomNumbers numbers, std::uint64_t bytes,
                           EncodeOutcome* outcome) {
  if (has_key) write_numbers(numbers, record);
  outcome->bytes = bytes;
}

// Calls `launch_it` with the format of a codec that is not rotated.
template <typename Launch>
Status with_format(core::CodecKind kind, Launch launch_it) {
  using core::CodecKind;
  switch (kind) {
    case CodecKind::kFp16: return launch_it(FloatFormat<CodecId::kFp16>());
    case CodecKind::kBf16: return launch_it(FloatFormat<CodecId::kBf16>());
    case CodecKind::kInt8: return launch_it(Int8Format());
    case CodecKind::kInt4: return launch_it(NibbleFormat<Int4Nibble>());
    case CodecKind::kFp4: return launch_it(NibbleFormat<Fp4Nibble>());
    case CodecKind::kSign: return launch_it(SignFormat());
    case CodecKind::kFp32:
    case CodecKind::kTopk:
    case CodecKind::kRandk: break;
  }
  return launch_it(FloatFormat<CodecId::kFp32>());
}

std::uint64_t blocks_for(std::uint64_t elements, unsigned elements_of_a_warp) {
  return blocks_of(elements, std::uint64_t{kDenseWarps} * elements_of_a_warp);
}

class DenseKernels final : public DeviceKernels {
 public:
  explicit DenseKernels(const core::CodecConfig& config) : config_(config), codec_(make_codec(config)) {}

  std::size_t scratch_bytes(std::size_t) const override { return 0; }

  Status encode(const EncodeJob& job) const override {
    const Change& change = job.change;
    if (change.moves_view()) ISTHMUS_RETURN_IF_ERROR(look_for_infinities(change, job.outcome, job.stream));
    const RandomNumbers numbers = RandomNumbers::of(job.state);
    EncodePart part{change.values.data(),
                    change.is_difference() ? change.view.data() : nullptr,
                    change.moved.empty() ? nullptr : change.moved.data(),
                    0,
                    change.size(),
                    job.record + header_bytes(),
                    numbers,
                    config_.rounding == core::Rounding::kStochastic,
                    job.outcome};
    if (config_.rotate) {
      const std::uint64_t groups = part.elements / kRotated;
      ISTHMUS_RETURN_IF_ERROR(launch(encode_rotated, groups, kDenseThreads, job.stream, part));
      skip(part, groups * kRotated);
      part.body += groups * kRotationBytes;
    }
    ISTHMUS_RETURN_IF_ERROR(with_format(config_.kind, [&](auto format) {
      using Format = decltype(format);
      return launch(encode_blocks<Format>, blocks_for(part.elements, Format::kElements), kDenseThreads,
                    job.stream, part);
    }));
    return launch(write_ends, 1, 1, job.stream, job.record, header_bytes() > 0, numbers,
                  std::uint64_t{codec_->max_encoded_bytes(change.size())}, job.outcome);
  }

  Status add(const AddJob& job) const override;

 private:
  // int4's rotation is drawn, so its key travels.
  std::size_t header_bytes() const { return config_.rotate ? RandomNumbers::kBytes : 0; }

  static void skip(EncodePart& part, std::uint64_t elements) {
    part.values += elements;
    if (part.view != nullptr) part.view += elements;
    if (part.moved != nullptr) part.moved += elements;
    part.first += elements;
    part.elements -= elements;
  }

  core::CodecConfig config_;
  std::unique_ptr<const Codec> codec_;
};

Status DenseKernels::add(const AddJob& job) const {
  AddPart part{job.record + header_bytes(), job.sum.size(), job.sum.data(), job.weight, job.set, job.numbers};
  if (config_.rotate) {
    const std::uint64_t groups = part.elements / kRotated;
    ISTHMUS_RETURN_IF_ERROR(launch(add_rotated, groups, kDenseThreads, job.stream, part));
    part.elements -= groups * kRotated;
    part.sum += groups * kRotated;
    part.body += groups * kRotationBytes;
  }
  return with_format(config_.kind, [&](auto format) {
    using Format = decltype(format);
    return launch(add_blocks<Format>, blocks_for(part.elements, Format::kElements), kDenseThreads, job.stream,
                  part);
  });
}

}  // namespace

std::unique_ptr<const DeviceKernels> make_dense_kernels(const core::CodecConfig& config) {
  return std::make_unique<DenseKernels>(config);
}

}  // namespace isthmus::compression
