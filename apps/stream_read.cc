#include "apps/stream_read.h"

#include <cstring>

namespace isthmus::apps {
namespace {

// A cache line a turn, in vectors that compilers know as a type: no pass over more memory than the caches
// hold is bound by anything but memory then, whatever the optimisation level. memcpy because the bytes need
// not be aligned.
using Vector = std::uint64_t __attribute__((vector_size(16)));
constexpr std::size_t kVectors = 8;

}  // namespace

std::uint64_t stream_read(std::span<const std::byte> bytes) noexcept {
  Vector sums[kVectors] = {};
  std::size_t at = 0;
  for (; at + sizeof(sums) <= bytes.size(); at += sizeof(sums)) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      Vector value;
      std::memcpy(&value, bytes.data() + at + i * sizeof(Vector), sizeof(Vector));
      sums[i] ^= value;
    }
  }
  std::uint64_t sum = 0;
  for (const Vector& part : sums) sum ^= part[0] ^ part[1];
  for (; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t value;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    sum ^= value;
  }
  return sum;
}

}  // namespace isthmus::apps
