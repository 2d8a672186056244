// Random numbers that are a function of where they are used: Philox4x32-10 (Salmon, Moraes, Dror,
// Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// A generator that is seeded once and drawn from in turn gives a restarted process other numbers than
// the one it replaces. Here the numbers of a stream follow from (seed, stream) alone, so everybody who
// knows these two agrees on them, at any time and in any order.
//
// Threads: a Random belongs to one thread; philox4x32() is pure.
// Memory:  values; nothing is allocated.
// Errors:  none.

#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace isthmus::core {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Four random words of a counter: for one key a bijection of 128 bits.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Neighbouring counters become unrelated numbers, cheaply: splitmix64's finaliser (Steele, Lea, Flood, 2014).
// For places to look at; what is told to others is drawn from Philox.
constexpr std::uint64_t spread_bits(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A key of its own for each (seed, what for, whose): unrelated to that of any other.
constexpr std::uint64_t mix_key(std::uint64_t seed, std::uint32_t use, std::uint64_t whose) noexcept {
  const PhiloxCounter words =
      philox4x32({static_cast<std::uint32_t>(whose), static_cast<std::uint32_t>(whose >> 32), use, 0},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return words[0] | std::uint64_t{words[1]} << 32;
}

// One stream of numbers. Streams of one seed never share a block; each is 2^34 words long and then
// begins again.
class Random {
 public:
  // Names a stream: by convention first what it is for, then whose it is.
  using Stream = std::array<std::uint32_t, 3>;

  Random(std::uint64_t seed, Stream stream) noexcept
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, stream[0], stream[1], stream[2]} {}

  std::uint32_t next_u32() noexcept {
    if (used_ == block_.size()) {
      block_ = philox4x32(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }

  std::uint64_t next_u64() noexcept {
    const std::uint64_t low = next_u32();
    return low | std::uint64_t{next_u32()} << 32;
  }

  // Uniform in [0, 1): 53 random bits.
  double uniform() noexcept { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

  // Uniform in [0, bound), without bias.  REQUIRES: bound > 0.
  std::uint32_t below(std::uint32_t bound) noexcept {
    // The first 2^32 mod bound words are thrown away, so that each value owns equally many.
    const std::uint32_t unfair = (0u - bound) % bound;
    for (;;) {
      const std::uint32_t word = next_u32();
      if (word >= unfair) return word % bound;
    }
  }

  // Standard normal (Box and Muller). The last bits depend on the C library's log and cos.
  double normal() noexcept {
    constexpr double kTwoPi = 6.283185307179586;
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(kTwoPi * uniform());
  }

  // Puts the values in an order that is one of all, each as likely (Fisher and Yates).
  // REQUIRES: values.size() < 2^32.
  template <typename T>
  void shuffle(std::span<T> values) noexcept {
    for (std::size_t left = values.size(); left > 1; --left)
      std::swap(values[left - 1], values[below(static_cast<std::uint32_t>(left))]);
  }

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  std::size_t used_ = 4;  // Words of block_ already given; all of them: the next call makes a block.
};

}  // namespace isthmus::core
