// Which codec each slice gets, so that one sync costs no more bytes than the link has, and loses as little as
// can be had for them.
//
// What is lost is the sum of squares of (change - what the receiver decodes of it), estimated from
// histograms. All slices pay the same price for a byte, which settles everything: a sparse slice keeps an
// element if its square is worth the bytes it takes, so there is one threshold for all of them; a slice takes
// a denser codec when that loses less than its bytes are worth elsewhere. The price is the lowest at which
// all fits.
//
// Threads: a pure function; the state belongs to one caller.
// Memory:  16 KiB a slice while it runs.
// Errors:  none: a budget that cannot be kept is said by `fits`.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/slice_choices.h"
#include "core/job_config.h"

namespace isthmus::compression {

struct AllocatorOptions {
  double min_keep = 1e-4;    // No sparse slice keeps a smaller share, nor less than one element.
  double hysteresis = 0.1;   // A slice changes to another kind of codec when that is better by this share.
  double growth = 1.25;      // A change whose norm is this many times what it used to be is too compressed.
  double max_urgency = 16;   // How much more its losses may count then.
  double max_stretch = 4.0;  // At most how many times the budget `stretch` asks for.
};

// What is remembered from one allocation to the next. Zero-initialised is the start, and it starts again when
// the number of slices is another.
struct AllocatorState {
  struct Slice {
    core::CodecKind kind = core::CodecKind::kFp32;
    double usual_norm = 0;  // Of the change: slowly follows it. 0: never seen.
    double urgency = 1;     // The weight of its losses.
  };
  std::vector<Slice> slices;
  double stretch = 1;
};

struct Allocation {
  std::vector<core::CodecConfig> codecs;  // Of each slice.
  std::uint64_t bytes = 0;                // What they write at most (Codec::max_encoded_bytes).
  // False: `bytes` is over the budget though every slice has the least it may have, which is what `codecs`
  // says then.
  bool fits = true;
  double threshold = 0;  // Of a sparse slice of urgency 1; 0 when there is none.
  // More than 1 while changes grow all over, that is, while more is learnt than sent: the caller does well to
  // give so many times the budget, by syncing less often or waiting longer, if it can.
  double stretch = 1;
};

// The same arguments give the same result. `state` is updated.
Allocation allocate(std::span<const SliceChange> slices, std::uint64_t budget_bytes,
                    const AllocatorOptions& options, AllocatorState& state);

}  // namespace isthmus::compression
