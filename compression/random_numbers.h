// The random numbers of a record: Philox (core/random.h) under the key of its slice, counted by record.
//
// Nothing is seeded and drawn in turn: the numbers follow from (key, record, what for, where), so a decoder,
// a restarted process and a GPU make the same ones, in any order.
//
// Threads: any.  Memory: none.  Errors: none.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compression/codec.h"
#include "core/random.h"

namespace isthmus::compression {

// What random numbers are for: no two uses share any. Part of the record grammars.
enum class RandomUse : std::uint32_t { kRounding = 1, kRotation = 2, kPlaces = 3 };

struct RandomNumbers {
  std::uint64_t key = 0;
  std::uint64_t record = 0;

  static constexpr std::size_t kBytes = 16;  // As part of a record: key:u64 record:u64.

  static constexpr RandomNumbers of(const CodecState& state) noexcept { return {state.key, state.records}; }
  static RandomNumbers read(const std::byte* in) noexcept {
    RandomNumbers numbers;
    std::memcpy(&numbers.key, in, sizeof(key));
    std::memcpy(&numbers.record, in + sizeof(key), sizeof(record));
    return numbers;
  }
  void write(std::byte* out) const noexcept {
    std::memcpy(out, &key, sizeof(key));
    std::memcpy(out + sizeof(key), &record, sizeof(record));
  }

  constexpr core::PhiloxKey philox_key() const noexcept {
    return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  }
  // The counter of the `block`-th four words of a use.
  constexpr core::PhiloxCounter counter(RandomUse use, std::size_t block) const noexcept {
    return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(record),
            static_cast<std::uint32_t>(record >> 32), static_cast<std::uint32_t>(use)};
  }
};

}  // namespace isthmus::compression
