// What the codecs whose record has a fixed size share: every element is in it, in order.
//
// Threads: immutable.
// Memory:  allocates nothing but error messages.
// Errors:  kCorruption for a record of the wrong size or with a value that no encoder writes.

#pragma once

#include "compression/codec.h"
#include "compression/kernels/kernels.h"

namespace isthmus::compression {

class DenseCodec : public Codec {
 public:
  explicit DenseCodec(const Kernels& kernels) : kernels_(kernels) {}

  Status accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const final;
  Status decode(std::span<const std::byte> in, std::span<float> out) const final;

 protected:
  // A prefix of a record that ends at a multiple of this many elements is a record too.
  static constexpr std::size_t kAlignment = 256;

  const Kernels& kernels() const { return kernels_; }

 private:
  // Whether every value is one that an encoder writes. `in` has the right size.
  virtual Status check_values(std::span<const std::byte> in, std::size_t elements) const = 0;
  virtual void add(std::span<const std::byte> in, float weight, std::span<float> sum) const = 0;

  Status check(std::span<const std::byte> in, std::size_t elements) const;

  const Kernels& kernels_;
};

}  // namespace isthmus::compression
