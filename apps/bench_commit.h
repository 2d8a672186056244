// A shard's commit of one contribution with Adam, slice after slice, and the memory traffic that it cannot do
// without.
//
// Threads: one.
// Memory:  64 slices of the default size, more than caches hold.
// Errors:  none.

#pragma once

#include <memory>
#include <vector>

#include "apps/bench_memory.h"
#include "compression/codec.h"
#include "server/local_slice.h"
#include "server/optimizer.h"

namespace isthmus::apps {

class CommitBench {
 public:
  CommitBench();

  // Every slice gets a contribution and commits it: decoded, averaged, applied. Seconds.
  double commit();
  // A loop that reads what came and reads and writes parameters and both of Adam's arrays: one addition an
  // array and element. Seconds.
  double touch();
  float parameter() const { return slices_.back()->parameters().read().back(); }

 private:
  const std::unique_ptr<const server::Optimizer> optimizer_;
  const std::unique_ptr<const compression::Codec> codec_;
  std::vector<core::SharedBytes> records_;
  std::vector<std::unique_ptr<server::LocalSlice>> slices_;
  std::vector<BenchMemory<float>> arrays_;  // As large as the slices' own.
  std::vector<float> scratch_;
  Step step_ = 0;
};

}  // namespace isthmus::apps
