#include "compression/rice.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace isthmus::compression {
namespace {

class BitWriter {
 public:
  explicit BitWriter(std::byte* out) : begin_(out), to_(out) {}

  void zeros(std::uint32_t count) noexcept {
    for (; count >= 32; count -= 32) put(0, 32);
    put(0, count);
  }

  // REQUIRES: count <= 32, value < 2^count.
  void put(std::uint64_t value, unsigned count) noexcept {
    bits_ |= value << filled_;
    filled_ += count;
    if (filled_ < 32) return;
    std::memcpy(to_, &bits_, 4);
    to_ += 4;
    bits_ >>= 32;
    filled_ -= 32;
  }

  std::size_t finish() noexcept {
    const std::size_t left = (filled_ + 7) / 8;
    std::memcpy(to_, &bits_, left);
    return static_cast<std::size_t>(to_ - begin_) + left;
  }

 private:
  std::byte* begin_;
  std::byte* to_;
  std::uint64_t bits_ = 0;
  unsigned filled_ = 0;  // Below 32 between calls.
};

// Reads as zeros what is past the end.
class BitReader {
 public:
  // REQUIRES: in.size() <= kMaxRiceBytes.
  explicit BitReader(std::span<const std::byte> in) : end_(in.size() * 8) {
    if (!in.empty()) std::memcpy(bytes_, in.data(), in.size());
    std::memset(bytes_ + in.size(), 0, sizeof(std::uint64_t) + 1);
  }

  // The zeros in front of the next one, which is taken too. False when there is no one.
  bool unary(std::uint64_t& zeros) noexcept {
    zeros = 0;
    while (at_ < end_) {
      const std::uint64_t window = peek();
      if (window != 0) {
        const auto here = static_cast<unsigned>(std::countr_zero(window));
        zeros += here;
        at_ += here + 1;
        return true;
      }
      zeros += 64 - at_ % 8;
      at_ += 64 - at_ % 8;
    }
    return false;
  }

  // REQUIRES: count < 57.
  bool take(unsigned count, std::uint64_t& value) noexcept {
    if (at_ + count > end_) return false;
    value = peek() & ((std::uint64_t{1} << count) - 1);
    at_ += count;
    return true;
  }

  // Whether all is read but for fewer than eight zeros.
  bool at_end() const noexcept { return end_ - at_ < 8 && (at_ == end_ || peek() == 0); }

 private:
  std::uint64_t peek() const noexcept {
    std::uint64_t word;
    std::memcpy(&word, bytes_ + at_ / 8, sizeof(word));
    return word >> (at_ % 8);
  }

  std::byte bytes_[kMaxRiceBytes + sizeof(std::uint64_t) + 1];
  std::size_t at_ = 0;  // Bit.
  std::size_t end_;
};

}  // namespace

// One more bit of parameter costs a bit a gap and saves the upper half of each quotient, rounded up. What it
// saves falls from bit to bit, so the first parameter that does not pay is the last worth looking at.
unsigned best_rice_parameter(std::span<const std::uint32_t> indices) noexcept {
  const std::size_t gaps = indices.empty() ? 0 : indices.size() - 1;
  if (gaps == 0) return 0;
  const auto saved_by = [&](unsigned parameter) {  // By going from `parameter` to the next.
    std::uint64_t saved = 0;
    for (std::size_t i = 0; i < gaps; ++i) {
      const std::uint32_t quotient = (indices[i + 1] - indices[i] - 1) >> parameter;
      saved += quotient - quotient / 2;
    }
    return saved;
  };
  const std::uint64_t mean = (indices.back() - indices.front()) / gaps;
  unsigned parameter = static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(mean, 1)) - 1);
  while (parameter > 0 && saved_by(parameter - 1) <= gaps) --parameter;
  while (parameter < kMaxRiceParameter && saved_by(parameter) > gaps) ++parameter;
  return parameter;
}

std::size_t rice_encode(std::span<const std::uint32_t> indices, unsigned parameter, std::byte* out) noexcept {
  BitWriter writer(out);
  const std::uint64_t low = (std::uint64_t{1} << parameter) - 1;
  for (std::size_t i = 1; i < indices.size(); ++i) {
    const std::uint32_t gap = indices[i] - indices[i - 1] - 1;
    const std::uint32_t quotient = gap >> parameter;
    const std::uint64_t rest = (gap & low) << 1 | 1;
    if (quotient + parameter < 32) {
      writer.put(rest << quotient, quotient + parameter + 1);
    } else {
      writer.zeros(quotient);
      writer.put(rest, parameter + 1);
    }
  }
  return writer.finish();
}

bool rice_decode(std::span<const std::byte> in, unsigned parameter, std::uint64_t elements,
                 std::span<std::uint32_t> indices) noexcept {
  if (in.size() > kMaxRiceBytes || parameter > kMaxRiceParameter) return false;
  BitReader reader(in);
  std::uint64_t index = indices.front();
  for (std::uint32_t& next : indices.subspan(1)) {
    std::uint64_t quotient, rest;
    if (!reader.unary(quotient) || !reader.take(parameter, rest)) return false;
    index += (quotient << parameter) + rest + 1;
    if (index >= elements) return false;
    next = static_cast<std::uint32_t>(index);
  }
  return reader.at_end();
}

}  // namespace isthmus::compression
