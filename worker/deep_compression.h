// Deep gradient compression (Lin, Han, Mao, Wang, Dally: "Deep Gradient Compression", ICLR 2018): a worker
// sends the few elements that have gathered most, and keeps the rest for later steps, with its momentum.
//
//     u = momentum u + gradient;  v = v + u;  send the largest of v;  v -= sent;  u = 0 where sent
//
// Momentum is corrected (it acts before elements are left out, so the shard's optimizer must have none) and
// masked (what was sent does not keep pushing from an old direction). What a kept element's encoding lost
// stays in v. Small tensors (biases, norms) are sent whole, as fp32, and only get the momentum. During the
// warm-up the share sent falls from stage to stage: keep^(1/5), keep^(2/5), keep^(3/5), keep^(4/5), keep.
//
// Threads: one at a time.
// Memory:  8 bytes an element, for the worker's life; a restarted worker begins with nothing gathered.
// Errors:  none. A slice whose sums overflow begins anew with that gradient. A push that fails later has
// taken its elements with it: lost once, never sent twice.

#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "compression/codec.h"
#include "core/layout.h"
#include "isthmus/config.h"

namespace isthmus::worker {

class DeepCompression {
 public:
  DeepCompression(const core::Layout& layout, const DeepCompressionConfig& config);

  // Gathers a finite gradient and gives what is to be encoded, valid until the next call for this slice.
  ConstTensorView gather(core::SliceId slice, ConstTensorView gradient);
  // How: the same codec and state in each step of a stage.
  const compression::Codec& codec(core::SliceId slice, Step step) const;
  compression::CodecState& state(core::SliceId slice) { return slices_[slice].state; }
  // `record`, of what gather() gave, is sent.
  void sent(core::SliceId slice, std::span<const std::byte> record);

 private:
  static constexpr std::size_t kStages = 5;  // Four of the warm-up, and what follows.
  struct Memory {
    bool whole = false;           // Small: nothing is left for later.
    std::vector<float> momentum;  // u
    std::vector<float> gathered;  // v; empty when sent whole.
    compression::CodecState state;
  };

  const float momentum_;
  const Step warmup_;
  std::array<std::unique_ptr<const compression::Codec>, kStages> sparse_;
  const std::unique_ptr<const compression::Codec> dense_;
  std::vector<Memory> slices_;
  std::vector<float> decoded_;  // Scratch
};

}  // namespace isthmus::worker
