#include "apps/stream_read.h"

#include <cstring>

namespace isthmus::apps {
namespace {

constexpr std::size_t kLine =
    64;  // A cache line a turn: more at a time, and fewer, were measured to be slower.

std::uint64_t read_words(const std::byte* in, std::size_t bytes) noexcept {
  std::uint64_t sum = 0;
  for (; bytes >= sizeof(sum); in += sizeof(sum), bytes -= sizeof(sum)) {
    std::uint64_t value;
    std::memcpy(&value, in, sizeof(value));
    sum ^= value;
  }
  return sum;
}

template <typename Vector>
[[gnu::always_inline]] inline Vector load(const std::byte* in) noexcept {
  Vector value;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

std::uint64_t read_lines(const std::byte* in, std::size_t lines) noexcept {
  using Vector = std::uint64_t __attribute__((vector_size(16)));
  Vector a{}, b{}, c{}, d{};
  for (; lines > 0; --lines, in += kLine) {
    a ^= load<Vector>(in);
    b ^= load<Vector>(in + 16);
    c ^= load<Vector>(in + 32);
    d ^= load<Vector>(in + 48);
  }
  a ^= b ^ c ^ d;
  return a[0] ^ a[1];
}

#if defined(__x86_64__)
// With loads of 32 bytes, half as fast again. No target_clones: TSan does not survive its resolver.
__attribute__((target("avx2"))) std::uint64_t read_lines_avx2(const std::byte* in,
                                                              std::size_t lines) noexcept {
  using Vector = std::uint64_t __attribute__((vector_size(32)));
  Vector a{}, b{};
  for (; lines > 0; --lines, in += kLine) {
    Vector low, high;
    std::memcpy(&low, in, sizeof(low));
    std::memcpy(&high, in + sizeof(low), sizeof(high));
    a ^= low;
    b ^= high;
  }
  a ^= b;
  return a[0] ^ a[1] ^ a[2] ^ a[3];
}
#endif

}  // namespace

std::uint64_t stream_read(std::span<const std::byte> bytes) noexcept {
  const std::size_t lines = bytes.size() / kLine;
  const std::uint64_t rest = read_words(bytes.data() + lines * kLine, bytes.size() % kLine);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return read_lines_avx2(bytes.data(), lines) ^ rest;
#endif
  return read_lines(bytes.data(), lines) ^ rest;
}

}  // namespace isthmus::apps
