// topk on a device: choosing what to keep.
//
// The same steps as topk_codec.cc, but decided on the device: a pass with the state's threshold or a sampled
// one, a second try, and if that does not fit the exact cut by counting. All of them are enqueued at once;
// `stage` says which have something to do, and the others return.
//
// Threads: of the device.
// Memory:  TopkScratch, of the device.
// Errors:  a difference that is not finite ends in kRefused.

#pragma once

#include <cuda_runtime.h>

#include "compression/cuda/look_back.cuh"
#include "compression/kernels/codes.h"
#include "compression/threshold.h"
#include "compression/topk_pass.h"

namespace isthmus::compression {

enum class TopkStage : std::uint32_t { kSampling, kSelecting, kCounting, kChosen, kRefused };

struct TopkControl {
  TopkStage stage;
  // What a pass keeps: all above the threshold, and of those equal to it the first `ties`.
  float threshold;
  std::uint32_t ties;
  // What it has found.
  DeviceWord kept;  // `most` and more of them too.
  DeviceWord log_sum;
  std::uint32_t over;  // The element after `most`.
  std::uint32_t refused;
  // Of counting: the digits so far, and the rank among those that have them.
  std::uint32_t found;
  std::uint32_t rank;
  float next_threshold;  // Of the state.
  DeviceWord bytes;      // Of all blocks that are written.
};

struct TopkScratch {
  TopkControl* control;
  std::uint32_t* bins;       // kRankBins
  std::uint32_t* sample;     // kSampleElements
  DeviceWord* select_words;  // Of the look-backs.
  DeviceWord* write_words;
  std::uint32_t* indices;  // `most`
  float* values;
};

struct TopkArguments {
  const float* change_values;
  const float* view;  // nullptr: none.
  float* moved;       // nullptr: nobody asks.
  TopkTarget target;
  std::uint64_t where;  // Of the sample.
  std::uint32_t sample_rank;
  core::KeptValues values;
  TopkScratch scratch;
};

inline constexpr std::uint32_t kAllTies = 0xffffffffu;
inline constexpr unsigned kSelectThreads = 256;
inline constexpr unsigned kSelectRows = 8;
inline constexpr unsigned kTileElements = kSelectThreads * kSelectRows;
inline constexpr unsigned kSampleThreads = 1024;

__device__ inline float topk_difference(const TopkArguments& a, std::uint64_t i) {
  return a.view == nullptr ? a.change_values[i] : a.change_values[i] - a.view[i];
}

// Begins a pass.
__device__ inline void begin_pass(TopkControl& control, float threshold, std::uint32_t ties) {
  control.stage = TopkStage::kSelecting;
  control.threshold = threshold;
  control.ties = ties;
  control.kept = 0;
  control.log_sum = 0;
}

// `threshold` 0: unknown. One thread.
__global__ void begin_topk(TopkArguments a, float threshold, bool count_only) {
  TopkControl& control = *a.scratch.control;
  control = TopkControl{};
  control.rank = static_cast<std::uint32_t>(a.target.wanted);
  if (a.target.wanted == 0) {
    control.stage = TopkStage::kChosen;
  } else if (count_only) {
    control.stage = TopkStage::kCounting;
  } else if (threshold > 0.0f) {
    begin_pass(control, threshold, kAllTies);
  } else {
    control.stage = TopkStage::kSampling;
  }
}

// The bin of the `rank`-th largest, and the rank among those in it. One thread.
__device__ inline std::uint32_t find_bin(const std::uint32_t* counts, std::uint32_t& rank) {
  auto bin = static_cast<std::uint32_t>(kRankBins - 1);
  while (bin > 0 && counts[bin] < rank) rank -= counts[bin--];
  return bin;
}

// One block.
__global__ void __launch_bounds__(kSampleThreads) sample_threshold(TopkArguments a) {
  __shared__ std::uint32_t counts[kRankBins];
  __shared__ std::uint32_t found;
  __shared__ std::uint32_t rank;
  TopkControl& control = *a.scratch.control;
  if (control.stage != TopkStage::kSampling) return;
  for (std::size_t line = threadIdx.x; line < kSampleLines; line += kSampleThreads) {
    const std::size_t first = sample_place(line, a.target.elements, a.where);
    for (std::size_t i = 0; i < kSampleLine; ++i)
      a.scratch.sample[line * kSampleLine + i] = magnitude_bits(topk_difference(a, first + i));
  }
  if (threadIdx.x == 0) {
    found = 0;
    rank = a.sample_rank;
  }
  for (unsigned digit = 0; digit < kRankDigits; ++digit) {
    for (std::size_t bin = threadIdx.x; bin < kRankBins; bin += kSampleThreads) counts[bin] = 0;
    __syncthreads();
    for (std::size_t i = threadIdx.x; i < kSampleElements; i += kSampleThreads) {
      const std::uint32_t bits = a.scratch.sample[i];
      if (has_rank_prefix(bits, found, digit)) atomicAdd(&counts[rank_digit(bits, digit)], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) found |= find_bin(counts, rank) << rank_shift(digit);
    __syncthreads();
  }
  if (threadIdx.x == 0) begin_pass(control, larger(std::bit_cast<float>(found), a.target.least), kAllTies);
}

// Writes the elements that a pass keeps, in order. Above and equal are counted together, in the halves of a
// word.
__global__ void __launch_bounds__(kSelectThreads) select_kept(TopkArguments a) {
  constexpr unsigned shift = 31;
  constexpr DeviceWord low = (DeviceWord{1} << shift) - 1;
  TopkControl& control = *a.scratch.control;
  if (control.stage != TopkStage::kSelecting) return;
  const unsigned tile = take_tile(a.scratch.select_words);
  const std::uint64_t first =
      std::uint64_t{tile} * kTileElements + warp_of_block() * (kTileElements / (kSelectThreads / kWarp));
  const std::uint32_t at_threshold = std::bit_cast<std::uint32_t>(control.threshold);
  const std::uint32_t ties = control.ties;

  float values[kSelectRows];
  unsigned above[kSelectRows], equal[kSelectRows];  // Bit l: lane l's element.
  unsigned all_above = 0, all_equal = 0;
  bool finite = true;
  for (unsigned r = 0; r < kSelectRows; ++r) {
    const std::uint64_t i = first + r * kWarp + lane_of_warp();
    const bool here = i < a.target.elements;
    values[r] = here ? topk_difference(a, i) : 0.0f;
    finite = finite && (a.view == nullptr || is_finite(values[r]));
    const std::uint32_t bits = magnitude_bits(values[r]);
    above[r] = __ballot_sync(kAllLanes, here && bits > at_threshold);
    equal[r] = __ballot_sync(kAllLanes, here && bits == at_threshold);
    all_above += static_cast<unsigned>(__popc(above[r]));
    all_equal += static_cast<unsigned>(__popc(equal[r]));
  }
  if (!finite) control.refused = 1;

  // By its first lane each warp counts once.
  const DeviceWord of_warp = DeviceWord{all_above} << shift | all_equal;
  DeviceWord of_tile;
  const DeviceWord in_tile =
      exclusive_sum_of_block<kSelectThreads>(lane_of_warp() == 0 ? of_warp : DeviceWord{0}, of_tile);
  const DeviceWord before_tile = look_back(a.scratch.select_words, tile, of_tile);
  const DeviceWord before = before_tile + __shfl_sync(kAllLanes, in_tile, 0);

  std::uint64_t above_before = before >> shift;
  std::uint64_t equal_before = before & low;
  const unsigned lower_lanes = (1u << lane_of_warp()) - 1;
  DeviceWord log_sum = 0;
  for (unsigned r = 0; r < kSelectRows; ++r) {
    const bool is_above = (above[r] >> lane_of_warp() & 1u) != 0;
    const bool is_equal = (equal[r] >> lane_of_warp() & 1u) != 0;
    const std::uint64_t my_above = above_before + static_cast<unsigned>(__popc(above[r] & lower_lanes));
    const std::uint64_t my_equal = equal_before + static_cast<unsigned>(__popc(equal[r] & lower_lanes));
    above_before += static_cast<unsigned>(__popc(above[r]));
    equal_before += static_cast<unsigned>(__popc(equal[r]));
    if (!is_above && !(is_equal && my_equal < ties)) continue;
    const std::uint64_t place = my_above + smaller<std::uint64_t>(my_equal, ties);
    const auto index = static_cast<std::uint32_t>(first + r * kWarp + lane_of_warp());
    if (place == a.target.most) control.over = index;
    if (place >= a.target.most) continue;
    log_sum += magnitude_bits(values[r]) - at_threshold;
    a.scratch.indices[place] = index;
    a.scratch.values[place] = values[r];
  }
  log_sum = sum_of_warp(log_sum);
  if (lane_of_warp() == 0 && log_sum != 0) atomicAdd(&control.log_sum, log_sum);
  const bool is_last = std::uint64_t{tile + 1} * kTileElements >= a.target.elements;
  if (is_last && threadIdx.x == 0) {
    const DeviceWord all = before_tile + of_tile;
    control.kept = (all >> shift) + smaller<DeviceWord>(all & low, ties);
  }
}

// What follows from a pass. `tries` are left after it. One thread.
__global__ void judge_pass(TopkArguments a, unsigned tries, bool may_sample) {
  TopkControl& control = *a.scratch.control;
  if (control.stage != TopkStage::kSelecting) return;
  if (control.refused != 0) {
    control.stage = TopkStage::kRefused;
    return;
  }
  TopkPass pass;
  pass.threshold = control.threshold;
  pass.count = smaller<std::uint64_t>(control.kept, a.target.most);
  pass.log_sum = control.log_sum;
  pass.too_many = control.kept > a.target.most;
  pass.looked_at = pass.too_many ? smaller((control.over / kPassPiece + 1) * kPassPiece, a.target.elements)
                                 : a.target.elements;
  const float next = next_threshold(pass, a.target);
  if (fits(pass, a.target)) {
    control.stage = TopkStage::kChosen;
    control.kept = pass.count;
    control.next_threshold = next;
  } else if (tries == 0) {
    control.stage = TopkStage::kCounting;
  } else if (may_sample && !is_telling(pass, a.target)) {
    control.stage = TopkStage::kSampling;
  } else if (next > 0.0f) {
    begin_pass(control, next, kAllTies);
  } else {
    control.stage = TopkStage::kCounting;
  }
}

// Adds one digit of all elements to `bins`.
__global__ void __launch_bounds__(kSelectThreads) count_digit(TopkArguments a, unsigned digit) {
  __shared__ std::uint32_t counts[kRankBins];
  TopkControl& control = *a.scratch.control;
  if (control.stage != TopkStage::kCounting) return;
  for (std::size_t bin = threadIdx.x; bin < kRankBins; bin += kSelectThreads) counts[bin] = 0;
  __syncthreads();
  const std::uint32_t found = control.found;
  const std::uint64_t step = std::uint64_t{gridDim.x} * kSelectThreads;
  bool finite = true;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kSelectThreads + threadIdx.x; i < a.target.elements;
       i += step) {
    const float value = topk_difference(a, i);
    finite = finite && (a.view == nullptr || is_finite(value));
    const std::uint32_t bits = magnitude_bits(value);
    if (has_rank_prefix(bits, found, digit)) atomicAdd(&counts[rank_digit(bits, digit)], 1u);
  }
  if (!finite) control.refused = 1;
  __syncthreads();
  for (std::size_t bin = threadIdx.x; bin < kRankBins; bin += kSelectThreads) {
    if (counts[bin] != 0) atomicAdd(&a.scratch.bins[bin], counts[bin]);
  }
}

// Reads the digit off `bins`, which are zeros again afterwards; after the last one the cut is known. One
// block.
__global__ void __launch_bounds__(kSelectThreads) choose_digit(TopkArguments a, unsigned digit) {
  __shared__ std::uint32_t counts[kRankBins];
  TopkControl& control = *a.scratch.control;
  if (control.stage != TopkStage::kCounting) return;
  for (std::size_t bin = threadIdx.x; bin < kRankBins; bin += kSelectThreads) {
    counts[bin] = a.scratch.bins[bin];
    a.scratch.bins[bin] = 0;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  control.found |= find_bin(counts, control.rank) << rank_shift(digit);
  if (control.refused != 0) {
    control.stage = TopkStage::kRefused;
  } else if (digit + 1 == kRankDigits) {
    const auto magnitude = std::bit_cast<float>(control.found);
    if (magnitude >= a.target.least) {
      begin_pass(control, magnitude, control.rank);
    } else {
      begin_pass(control, a.target.least, kAllTies);
    }
  }
}

}  // namespace isthmus::compression
