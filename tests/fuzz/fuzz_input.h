// A fuzzer's bytes, taken as the numbers that a test case is made of.
//
// Threads: one.  Memory: views the bytes.  Errors: none; what is missing is zero.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace isthmus::fuzz {

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : rest_(std::as_bytes(std::span(data, size))) {}

  template <typename T>
  T take() {
    T value{};
    const std::size_t bytes = std::min(sizeof(T), rest_.size());
    std::memcpy(&value, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
    return value;
  }

  // At most `bytes` of them, in memory that ends where they end, so that AddressSanitizer sees a read beyond.
  std::vector<std::byte> take_bytes(std::size_t bytes) {
    bytes = std::min(bytes, rest_.size());
    std::vector<std::byte> taken(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(bytes));
    rest_ = rest_.subspan(bytes);
    return taken;
  }

  // At most `most` floats; what is not finite becomes a zero of its sign.
  std::vector<float> take_floats(std::size_t most) {
    std::vector<float> values(std::min(most, rest_.size() / sizeof(float)));
    for (float& value : values) {
      value = take<float>();
      if (!std::isfinite(value)) value = std::copysign(0.0f, value);
    }
    return values;
  }

  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace isthmus::fuzz

// What must hold; libFuzzer keeps the input with which it does not.
#define FUZZ_EXPECT(condition)                                                            \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)
