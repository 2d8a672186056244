#include "compression/topk_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "compression/kernels/float16.h"
#include "core/check.h"

namespace isthmus::compression {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(std::uint32_t);  // The number of elements kept.
constexpr std::size_t kIndexBytes = sizeof(std::uint32_t);
constexpr std::size_t kValueBytes = sizeof(std::uint16_t);

// A sample: this many elements at this many places.
constexpr std::size_t kLine = 16;
constexpr std::size_t kLines = 4096;

template <typename T>
T load(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

// How many elements a threshold should let pass so that `wanted` of them can be chosen exactly.
std::size_t aim_for(std::size_t wanted) { return wanted + wanted / 8 + 1; }

bool too_few(std::size_t found, std::size_t wanted) { return found * 10 < wanted * 9; }

// Spreads the bits of a counter: splitmix64's finaliser.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The magnitude of about the `rank`-th largest element, from up to 64 Ki of them. A large slice is cut into
// strata and a cache line is read at an irregular place of each: a regular stride would see only some columns
// of a matrix.
float sampled_threshold(std::span<const float> in, std::size_t rank) {
  std::vector<float> sample;
  const auto take = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) sample.push_back(std::fabs(in[i]));
  };
  if (in.size() <= kLine * kLines) {
    sample.reserve(in.size());
    take(0, in.size());
  } else {
    sample.reserve(kLine * kLines);
    const std::size_t stratum = in.size() / kLines;
    for (std::size_t line = 0; line < kLines; ++line) {
      take(line * stratum + mix(line) % (stratum - kLine + 1), kLine);
    }
  }
  const double share = static_cast<double>(rank) / static_cast<double>(in.size());
  const auto at =
      std::min(static_cast<std::size_t>(share * static_cast<double>(sample.size())), sample.size() - 1);
  std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(at), sample.end(),
                   std::greater<>());
  return std::max(sample[at], kHalfSmallest);
}

// Keeps the `wanted` largest of `picked`, the lower index first among equals, in ascending order. Returns the
// threshold to try next time: this call's exact one where that is known, else a corrected guess.
float cut(std::span<const float> in, std::size_t wanted, float threshold,
          std::vector<std::uint32_t>& picked) {
  const std::size_t aim = aim_for(wanted);
  std::vector<float> magnitudes;
  magnitudes.reserve(picked.size());
  for (const std::uint32_t index : picked) magnitudes.push_back(std::fabs(in[index]));

  float next;
  auto end = magnitudes.end();
  if (picked.size() >= aim) {
    const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(aim - 1);
    std::nth_element(magnitudes.begin(), last, end, std::greater<>());
    next = *last;
    end = last + 1;
  } else {
    // An eighth: near the tail of a bell curve a count moves some eight times as fast as its threshold.
    const double reached = static_cast<double>(picked.size()) / static_cast<double>(aim);
    next = std::max(threshold * static_cast<float>(std::pow(reached, 0.125)), kHalfSmallest);
  }
  if (picked.size() <= wanted) return next;

  const auto kth = magnitudes.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
  std::nth_element(magnitudes.begin(), kth, end, std::greater<>());
  const float bound = *kth;
  const auto above = std::count_if(magnitudes.begin(), kth, [&](float m) { return m > bound; });
  std::size_t ties = wanted - static_cast<std::size_t>(above);
  std::erase_if(picked, [&](std::uint32_t index) {
    const float magnitude = std::fabs(in[index]);
    if (magnitude != bound) return magnitude < bound;
    if (ties == 0) return true;
    --ties;
    return false;
  });
  return next;
}

}  // namespace

std::size_t TopkCodec::wanted(std::size_t elements) const noexcept {
  if (elements == 0) return 0;
  const double share = std::round(keep_ * static_cast<double>(elements));
  return static_cast<std::size_t>(std::clamp(share, 1.0, static_cast<double>(elements)));
}

std::size_t TopkCodec::max_encoded_bytes(std::size_t elements) const noexcept {
  return kHeaderBytes + wanted(elements) * (kIndexBytes + kValueBytes);
}

std::vector<std::uint32_t> TopkCodec::select(std::span<const float> in, float threshold) const {
  std::vector<std::uint32_t> found(std::min(in.size(), 2 * wanted(in.size()) + 64));
  const std::size_t count = kernels_.select(in.data(), in.size(), threshold, found.data(), found.size());
  const bool complete = count <= found.size();
  found.resize(count);
  if (!complete) kernels_.select(in.data(), in.size(), threshold, found.data(), found.size());
  return found;
}

std::vector<std::uint32_t> TopkCodec::candidates(std::span<const float> in, float& threshold) const {
  const std::size_t k = wanted(in.size());
  const bool known = threshold >= kHalfSmallest;  // False for NaN.
  if (!known) threshold = sampled_threshold(in, aim_for(k));
  std::vector<std::uint32_t> found = select(in, threshold);
  if (known && too_few(found.size(), k) && threshold > kHalfSmallest) {
    threshold = sampled_threshold(in, aim_for(k));
    found = select(in, threshold);
  }
  if (too_few(found.size(), k) && threshold > kHalfSmallest) {
    threshold = kHalfSmallest;  // The sample misled us: look at everything.
    found = select(in, threshold);
  }
  return found;
}

std::size_t TopkCodec::encode(std::span<const float> in, CodecState& state, std::span<std::byte> out) const {
  ISTHMUS_CHECK(out.size() >= max_encoded_bytes(in.size()));
  ISTHMUS_CHECK(in.size() <= std::numeric_limits<std::uint32_t>::max());
  std::vector<std::uint32_t> picked;
  if (!in.empty()) {
    float threshold = state.threshold;
    picked = candidates(in, threshold);
    state.threshold = cut(in, wanted(in.size()), threshold, picked);
  }
  const auto count = static_cast<std::uint32_t>(picked.size());
  std::memcpy(out.data(), &count, kHeaderBytes);
  std::byte* index_out = out.data() + kHeaderBytes;
  std::byte* value_out = index_out + picked.size() * kIndexBytes;
  for (const std::uint32_t index : picked) {
    const std::uint16_t value = to_half(in[index]);
    std::memcpy(index_out, &index, kIndexBytes);
    std::memcpy(value_out, &value, kValueBytes);
    index_out += kIndexBytes;
    value_out += kValueBytes;
  }
  return static_cast<std::size_t>(value_out - out.data());
}

Status TopkCodec::check(std::span<const std::byte> in, std::size_t elements) const {
  const auto bad = [](std::string what) {
    return Status(ErrorCode::kCorruption, "topk record: " + std::move(what));
  };
  if (in.size() < kHeaderBytes) return bad("no count");
  const std::uint64_t count = load<std::uint32_t>(in.data());
  if (count > elements) {
    return bad(std::to_string(count) + " values for " + std::to_string(elements) + " elements");
  }
  if (in.size() != kHeaderBytes + count * (kIndexBytes + kValueBytes)) {
    return bad(std::to_string(in.size()) + " bytes for " + std::to_string(count) + " values");
  }
  const std::byte* indices = in.data() + kHeaderBytes;
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = load<std::uint32_t>(indices + i * kIndexBytes);
    if (index < next || index >= elements) return bad("index out of order or out of range");
    next = index + 1;
  }
  if (!kernels_.finite_f16(indices + count * kIndexBytes, count)) return bad("a value is not finite");
  return {};
}

Status TopkCodec::accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const {
  ISTHMUS_RETURN_IF_ERROR(check(in, sum.size()));
  const std::size_t count = load<std::uint32_t>(in.data());
  const std::byte* indices = in.data() + kHeaderBytes;
  const std::byte* values = indices + count * kIndexBytes;
  for (std::size_t i = 0; i < count; ++i) {
    // + 0.0f: as in the kernels, a decoded zero has no sign.
    const float decoded = from_half(load<std::uint16_t>(values + i * kValueBytes)) + 0.0f;
    sum[load<std::uint32_t>(indices + i * kIndexBytes)] += weight * decoded;
  }
  return {};
}

Status TopkCodec::decode(std::span<const std::byte> in, std::span<float> out) const {
  ISTHMUS_RETURN_IF_ERROR(check(in, out.size()));
  std::fill(out.begin(), out.end(), 0.0f);
  return accumulate(in, 1.0f, out);
}

}  // namespace isthmus::compression
