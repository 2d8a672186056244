// topk on a device: what was chosen becomes a record, a block of threads for each of its blocks.

#include "compression/cuda/device_kernels.h"
#include "compression/cuda/kept_block.cuh"
#include "compression/cuda/runtime.cuh"
#include "compression/cuda/topk_select.cuh"
#include "compression/rice.h"
#include "compression/topk_codec.h"
#include "compression/topk_writer.h"

namespace isthmus::compression {
namespace {

constexpr unsigned kWriteThreads = kTopkBlock;
static_assert(kTopkBlock == kKeptBlock && kTopkBlock == kRiceBlock);

// How much one more bit of parameter saves, over all gaps.
__device__ std::uint64_t saved_by(std::uint32_t gap, unsigned parameter) {
  const std::uint32_t quotient = gap >> parameter;
  std::uint64_t all;
  (void)exclusive_sum_of_block<kWriteThreads>(std::uint64_t{quotient - quotient / 2}, all);
  return all;
}

// best_rice_parameter(), each thread with its gap; 0 for those that have none.
__device__ unsigned best_parameter(std::uint32_t gap, std::uint64_t gaps, std::uint32_t span) {
  if (gaps == 0) return 0;
  auto parameter = static_cast<unsigned>(std::bit_width(larger<std::uint64_t>(span / gaps, 1)) - 1);
  while (parameter > 0 && saved_by(gap, parameter - 1) <= gaps) --parameter;
  while (parameter < kMaxRiceParameter && saved_by(gap, parameter) > gaps) ++parameter;
  return parameter;
}

// Sets bits of an array of zeros. REQUIRES: bits < 2^32.
__device__ void put_bits(std::uint32_t* words, std::uint32_t at, std::uint32_t bits) {
  const std::uint64_t shifted = std::uint64_t{bits} << (at % 32);
  if (const auto low = static_cast<std::uint32_t>(shifted); low != 0) atomicOr(&words[at / 32], low);
  if (const auto high = static_cast<std::uint32_t>(shifted >> 32); high != 0)
    atomicOr(&words[at / 32 + 1], high);
}

__global__ void __launch_bounds__(kWriteThreads) write_blocks(TopkArguments a, std::byte* blocks) {
  __shared__ std::uint32_t indices[kTopkBlock];
  __shared__ std::uint32_t words[kMaxRiceBytes / 4 + 2];
  TopkControl& control = *a.scratch.control;
  if (control.stage != TopkStage::kChosen) return;
  const unsigned tile = take_tile(a.scratch.write_words);
  const std::uint64_t first = std::uint64_t{tile} * kTopkBlock;
  if (first >= control.kept) return;
  const auto n = static_cast<unsigned>(smaller<std::uint64_t>(kTopkBlock, control.kept - first));
  const unsigned i = threadIdx.x;

  if (i < n) indices[i] = a.scratch.indices[first + i];
  for (unsigned word = i; word < kMaxRiceBytes / 4 + 2; word += kWriteThreads) words[word] = 0;
  __syncthreads();
  const bool has_gap = i > 0 && i < n;
  const std::uint32_t gap = has_gap ? indices[i] - indices[i - 1] - 1 : 0;
  const unsigned parameter = best_parameter(gap, n - 1, indices[n - 1] - indices[0]);
  const std::uint32_t quotient = gap >> parameter;
  std::uint32_t all_bits;
  const std::uint32_t at =
      exclusive_sum_of_block<kWriteThreads>(has_gap ? quotient + 1 + parameter : 0u, all_bits);
  if (has_gap) put_bits(words, at + quotient, (gap & ((1u << parameter) - 1)) << 1 | 1u);
  const unsigned bit_bytes = (all_bits + 7) / 8;
  const unsigned value_bytes = kept_block_bytes(a.values, n);
  const unsigned block_bytes = static_cast<unsigned>(kTopkBlockHeader) + bit_bytes + value_bytes;
  const DeviceWord before = look_back(a.scratch.write_words, tile, block_bytes);

  std::byte* const out = blocks + before;
  if (i == 0) {
    store_unaligned(out, indices[0]);
    store_unaligned(out + 4, static_cast<std::uint16_t>(bit_bytes));
    out[6] = static_cast<std::byte>(parameter);
  }
  for (unsigned byte = i; byte < bit_bytes; byte += kWriteThreads)
    out[kTopkBlockHeader + byte] = static_cast<std::byte>(words[byte / 4] >> (byte % 4 * 8) & 0xffu);
  const float value = i < n ? a.scratch.values[first + i] : 0.0f;
  const float decoded = write_kept(a.values, value, n, out + kTopkBlockHeader + bit_bytes);
  if (a.moved != nullptr && i < n) a.moved[indices[i]] += decoded;
  if (i == 0 && first + n == control.kept) control.bytes = before + block_bytes;
}

__global__ void finish_topk(TopkArguments a, std::byte kind, std::byte* record, EncodeOutcome* outcome) {
  const TopkControl& control = *a.scratch.control;
  outcome->refused = control.stage == TopkStage::kChosen ? 0 : 1;
  outcome->threshold = control.next_threshold;
  outcome->bytes = kTopkHeaderBytes + control.bytes;
  record[0] = kind;
  store_unaligned(record + 1, static_cast<std::uint32_t>(control.kept));
}

// The set bit at or after bit `at`; there is one.
__device__ std::uint32_t next_one(const std::byte* bits, std::uint32_t at) {
  unsigned byte = static_cast<unsigned>(bits[at / 8]) >> (at % 8);
  while (byte == 0) {
    at = (at / 8 + 1) * 8;
    byte = static_cast<unsigned>(bits[at / 8]);
  }
  return at + static_cast<unsigned>(__ffs(static_cast<int>(byte)) - 1);
}

__device__ std::uint32_t take_bits(const std::byte* bits, std::uint32_t at, unsigned count) {
  std::uint32_t value = 0;
  for (unsigned done = 0; done < count;) {
    const unsigned here = smaller(8 - (at + done) % 8, count - done);
    const unsigned byte = static_cast<unsigned>(bits[(at + done) / 8]) >> ((at + done) % 8);
    value |= (byte & ((1u << here) - 1)) << done;
    done += here;
  }
  return value;
}

// The blocks have been checked. Their gaps follow from each other, so one thread reads them.
__global__ void __launch_bounds__(kWriteThreads)
    add_blocks(const std::byte* record, const std::uint64_t* blocks, core::KeptValues values,
               std::uint64_t count, float weight, float* sum) {
  __shared__ std::uint32_t indices[kTopkBlock];
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kTopkBlock;
  const auto n = static_cast<unsigned>(smaller<std::uint64_t>(kTopkBlock, count - first));
  const std::byte* const in = record + blocks[blockIdx.x];
  const std::byte* const bits = in + kTopkBlockHeader;
  if (threadIdx.x == 0) {
    const auto parameter = static_cast<unsigned>(in[6]);
    std::uint32_t index = load_unaligned<std::uint32_t>(in);
    std::uint32_t at = 0;
    indices[0] = index;
    for (unsigned i = 1; i < n; ++i) {
      const std::uint32_t one = next_one(bits, at);
      index += ((one - at) << parameter) + take_bits(bits, one + 1, parameter) + 1;
      at = one + 1 + parameter;
      indices[i] = index;
    }
  }
  __syncthreads();
  const float decoded = read_kept(values, bits + load_unaligned<std::uint16_t>(in + 4), n);
  if (threadIdx.x < n) sum[indices[threadIdx.x]] += weight * decoded;
}

// Hands out parts of the scratch, or only counts them.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}
  template <typename T>
  T* take(std::size_t count) {
    T* const part = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ += (count * sizeof(T) + 15) / 16 * 16;
    return part;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

class TopkKernels final : public DeviceKernels {
 public:
  explicit TopkKernels(const core::CodecConfig& config) : config_(config) {}

  std::size_t scratch_bytes(std::size_t elements) const override {
    Carver carver(nullptr);
    carve(carver, target(elements));
    return carver.used();
  }

  Status encode(const EncodeJob& job) const override;
  Status add(const AddJob& job) const override;

 private:
  struct Words {
    std::size_t select, write;
  };

  TopkTarget target(std::size_t elements) const {
    return topk_target(config_.keep, config_.values, elements);
  }
  static Words words_of(const TopkTarget& target) {
    return {look_back_words(blocks_of(target.elements, kTileElements)),
            look_back_words(blocks_of(target.most, kTopkBlock))};
  }
  static TopkScratch carve(Carver& carver, const TopkTarget& target) {
    const Words words = words_of(target);
    TopkScratch scratch{};
    scratch.control = carver.take<TopkControl>(1);
    scratch.bins = carver.take<std::uint32_t>(kRankBins);
    scratch.sample = carver.take<std::uint32_t>(target.elements < kSampleElements ? 0 : kSampleElements);
    scratch.select_words = carver.take<DeviceWord>(words.select);
    scratch.write_words = carver.take<DeviceWord>(words.write);
    scratch.indices = carver.take<std::uint32_t>(target.most);
    scratch.values = carver.take<float>(target.most);
    return scratch;
  }

  // One pass, and what follows from it.
  static Status select(const TopkArguments& a, unsigned tries, bool may_sample, DeviceStream stream) {
    ISTHMUS_RETURN_IF_ERROR(zero(a.scratch.select_words, words_of(a.target).select, stream));
    ISTHMUS_RETURN_IF_ERROR(
        launch(select_kept, blocks_of(a.target.elements, kTileElements), kSelectThreads, stream, a));
    return launch(judge_pass, 1, 1, stream, a, tries, may_sample);
  }
  template <typename T>
  static Status zero(T* memory, std::size_t count, DeviceStream stream) {
    return to_status(cudaMemsetAsync(memory, 0, count * sizeof(T), stream), "clearing device memory");
  }
  Status by_threshold(const TopkArguments& a, DeviceStream stream) const;
  Status by_counting(const TopkArguments& a, DeviceStream stream) const;

  core::CodecConfig config_;
};

Status TopkKernels::encode(const EncodeJob& job) const {
  const Change& change = job.change;
  const TopkTarget target = this->target(change.size());
  Carver carver(job.scratch);
  const TopkArguments a{change.values.data(),
                        change.is_difference() ? change.view.data() : nullptr,
                        change.moved.empty() ? nullptr : change.moved.data(),
                        target,
                        job.state.records,
                        target.elements < kSampleElements
                            ? 0u
                            : static_cast<std::uint32_t>(sample_rank(target.wanted, target.elements)),
                        config_.values,
                        carve(carver, target)};
  ISTHMUS_RETURN_IF_ERROR(copy_device_view(change, job.stream));
  const bool known = is_usable(job.state.threshold, target);
  const bool large = target.elements >= kSampleElements;
  const bool count_only = target.wanted < kFewestByThreshold || (!known && !large);
  ISTHMUS_RETURN_IF_ERROR(
      launch(begin_topk, 1, 1, job.stream, a, known ? job.state.threshold : 0.0f, count_only));
  if (!count_only) ISTHMUS_RETURN_IF_ERROR(by_threshold(a, job.stream));
  ISTHMUS_RETURN_IF_ERROR(by_counting(a, job.stream));
  const std::uint64_t blocks = blocks_of(target.most, kTopkBlock);
  ISTHMUS_RETURN_IF_ERROR(zero(a.scratch.write_words, words_of(target).write, job.stream));
  ISTHMUS_RETURN_IF_ERROR(
      launch(write_blocks, blocks, kWriteThreads, job.stream, a, job.record + kTopkHeaderBytes));
  return launch(finish_topk, 1, 1, job.stream, a, kept_kind(config_.values), job.record, job.outcome);
}

Status TopkKernels::by_threshold(const TopkArguments& a, DeviceStream stream) const {
  const bool large = a.target.elements >= kSampleElements;
  for (const unsigned tries_left : {1u, 0u}) {
    if (large) ISTHMUS_RETURN_IF_ERROR(launch(sample_threshold, 1, kSampleThreads, stream, a));
    ISTHMUS_RETURN_IF_ERROR(select(a, tries_left, large, stream));
  }
  return {};
}

Status TopkKernels::by_counting(const TopkArguments& a, DeviceStream stream) const {
  constexpr std::uint64_t most_blocks = 1024;
  const std::uint64_t blocks = smaller(most_blocks, blocks_of(a.target.elements, kTileElements));
  ISTHMUS_RETURN_IF_ERROR(zero(a.scratch.bins, kRankBins, stream));
  for (unsigned digit = 0; digit < kRankDigits; ++digit) {
    ISTHMUS_RETURN_IF_ERROR(launch(count_digit, blocks, kSelectThreads, stream, a, digit));
    ISTHMUS_RETURN_IF_ERROR(launch(choose_digit, 1, kSelectThreads, stream, a, digit));
  }
  return select(a, 0, false, stream);
}

Status TopkKernels::add(const AddJob& job) const {
  ISTHMUS_RETURN_IF_ERROR(zero_sum(job));
  return launch(add_blocks, blocks_of(job.count, kTopkBlock), kWriteThreads, job.stream, job.record,
                job.blocks, job.values, job.count, job.weight, job.sum.data());
}

}  // namespace

std::unique_ptr<const DeviceKernels> make_topk_kernels(const core::CodecConfig& config) {
  return std::make_unique<TopkKernels>(config);
}

}  // namespace isthmus::compression
