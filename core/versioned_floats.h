// A slice's values: written in place while nobody else holds them, into a fresh copy when somebody does.
// This makes snapshots free: a pull in flight, a WAN encode or an observer holds a reference.
//
// Threads: one thread owns the VersionedFloats and is the only one to call it; references that it gave
//          out may be read and dropped on any thread.
// Memory:  one array of `elements` floats, one more for each version still referenced.
// Errors:  none; allocation failure is bad_alloc, caught once a thread.

#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "core/bytes.h"

namespace isthmus::core {

class VersionedFloats {
 public:
  using Reference = std::shared_ptr<const float[]>;

  // Zeros.
  explicit VersionedFloats(std::size_t elements)
      : values_(std::make_shared<float[]>(elements)), elements_(elements) {}

  std::size_t elements() const noexcept { return elements_; }
  std::span<const float> read() const noexcept { return {values_.get(), elements_}; }

  // The values, ready to be changed: a copy of them when a reference is still out.
  std::span<float> write() {
    if (values_.use_count() > 1) {
      auto fresh = std::make_shared_for_overwrite<float[]>(elements_);
      std::copy_n(values_.get(), elements_, fresh.get());
      values_ = std::move(fresh);
    } else {
      // A reference taken and dropped: its drop acquires what the last reader's drop released, so that its
      // reads come before our writes. A fence would do, but thread sanitizers do not see those.
      (void)Reference(values_);
    }
    return {values_.get(), elements_};
  }

  // A snapshot that later writes do not change.
  Reference share() const { return values_; }
  SharedBytes share_bytes() const { return {values_, std::as_bytes(read())}; }

 private:
  std::shared_ptr<float[]> values_;
  std::size_t elements_;
};

}  // namespace isthmus::core
