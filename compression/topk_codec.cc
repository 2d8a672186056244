#include "compression/topk_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "compression/kernels/float16.h"
#include "compression/marks.h"
#include "compression/rice.h"
#include "compression/topk_writer.h"
#include "core/check.h"

namespace isthmus::compression {
namespace {

// record := kind:u8 count:u32 block × ⌈count / 256⌉
constexpr std::size_t kHeaderBytes = 5;

// Of fewer elements even the right threshold seldom keeps 0.9 to 1.1 times as many: they are counted.
constexpr std::size_t kFewestByThreshold = 64;

constexpr std::uint32_t kInfinityBits = 0x7f800000u;
constexpr std::size_t kAllTies = std::numeric_limits<std::size_t>::max();

template <typename T>
T load(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

bool too_few(double count, std::size_t wanted) { return count * 10 < static_cast<double>(wanted) * 9; }

std::size_t blocks_of(std::size_t count) { return count / kTopkBlock + (count % kTopkBlock != 0); }

Status bad(std::string what) { return {ErrorCode::kCorruption, "topk record: " + std::move(what)}; }

}  // namespace

// One walk over all elements.
struct TopkCodec::Pass {
  float threshold = 0.0f;
  std::size_t count = 0;      // Kept, that is.
  double log2_sum = 0.0;      // Of magnitude / threshold, of those.
  std::size_t looked_at = 0;  // Fewer than all: too many were worth keeping.
  bool finite = true;
  std::size_t bytes = 0;

  // How many there would have been in all.
  double estimate(std::size_t elements) const {
    return static_cast<double>(count) * static_cast<double>(elements) / static_cast<double>(looked_at);
  }
  double fall() const { return tail_fall(static_cast<double>(count), log2_sum); }
};

std::size_t TopkCodec::most_kept(std::size_t elements) const noexcept {
  const std::size_t k = wanted(elements);
  return std::min(k + k / 10, elements);
}

// All blocks coded with one parameter b take at most elements / 2^b zeros and count * (1 + b) other bits;
// each with its best one takes no more.
std::size_t TopkCodec::max_encoded_bytes(std::size_t elements) const noexcept {
  const std::size_t count = most_kept(elements);
  if (count == 0) return kHeaderBytes;
  const auto parameter = static_cast<std::size_t>(std::bit_width(elements / count) - 1);
  const std::size_t bits = (elements >> parameter) + count * (1 + parameter);
  return kHeaderBytes + blocks_of(count) * (kTopkBlockHeader + 1) + bits / 8 + kept_bytes(values_, count);
}

TopkCodec::Pass TopkCodec::run(const Change& change, const Cut& cut, std::span<std::byte> out) const {
  const std::size_t most = most_kept(change.size());
  const std::uint32_t at_threshold = std::bit_cast<std::uint32_t>(cut.magnitude);
  TopkWriter writer(values_, kernels_, most, out.data() + kHeaderBytes, change.moved);
  Pass pass{.threshold = cut.magnitude};
  std::size_t ties = cut.ties;
  std::uint64_t log_sum = 0;  // In 2^-23: the bits of a float are nearly the logarithm of it.
  bool too_many = false;
  pass.looked_at = for_each_mark(change, kernels_, cut.magnitude, [&](std::size_t index) {
    const float value = change.at(index);
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & ~kSignBit;
    pass.finite = bits < kInfinityBits || !change.is_difference();
    if (bits == at_threshold) {
      if (ties == 0) return true;
      --ties;
    }
    too_many = pass.count == most;
    if (too_many || !pass.finite) return false;
    ++pass.count;
    log_sum += bits - at_threshold;
    writer.add(static_cast<std::uint32_t>(index), value);
    return true;
  });
  pass.log2_sum = static_cast<double>(log_sum) * 0x1p-23;
  const bool enough = !too_few(static_cast<double>(pass.count), wanted(change.size())) ||
                      cut.magnitude <= least_kept(values_);
  if (pass.finite && !too_many && enough) {
    pass.bytes = kHeaderBytes + writer.finish();
  } else {
    writer.undo();
  }
  return pass;
}

float TopkCodec::next_threshold(const Change& change, const Pass& pass) const {
  if (pass.count == 0) return 0.0f;
  const double ratio = pass.estimate(change.size()) / static_cast<double>(wanted(change.size()));
  return std::max(corrected_threshold(pass.threshold, pass.fall(), ratio), least_kept(values_));
}

// At most two tries; without bytes when neither kept the right number.
TopkCodec::Pass TopkCodec::by_threshold(const Change& change, const CodecState& state,
                                        std::span<std::byte> out) const {
  const float least = least_kept(values_);
  const std::size_t k = wanted(change.size());
  const bool large = change.size() >= kSampleElements;
  float threshold = state.threshold;
  const bool known = threshold >= least && threshold <= std::numeric_limits<float>::max();  // False for NaN.
  const auto sampled = [&] { return std::max(sampled_threshold(change, k, state.records), least); };
  Pass pass;
  if (k < kFewestByThreshold || (!known && !large)) return pass;
  if (!known) threshold = sampled();
  for (int tries = 2; tries > 0 && pass.bytes == 0 && pass.finite && threshold > 0; --tries) {
    pass = run(change, {threshold, kAllTies}, out);
    // A pass that stopped early, or kept next to nothing, says little of what would fit.
    const bool telling = pass.count * 8 >= k && pass.looked_at * 2 >= change.size();
    if (pass.bytes == 0 && tries > 1)
      threshold = telling || !large ? next_threshold(change, pass) : sampled();
  }
  return pass;
}

TopkCodec::Pass TopkCodec::by_counting(const Change& change, std::span<std::byte> out) const {
  Pass pass;
  const std::size_t k = wanted(change.size());
  if (k == 0) return pass;
  const std::optional<Cut> cut = exact_cut(change, k, kernels_);
  if (!cut) {
    pass.finite = false;
    return pass;
  }
  const float least = least_kept(values_);
  return run(change, cut->magnitude >= least ? *cut : Cut{least, kAllTies}, out);
}

Result<std::size_t> TopkCodec::encode_change(const Change& change, CodecState& state,
                                             std::span<std::byte> out) const {
  ISTHMUS_CHECK(change.size() <= std::numeric_limits<std::uint32_t>::max());
  copy_view(change);
  Pass pass = by_threshold(change, state, out);
  if (pass.bytes == 0 && pass.finite) pass = by_counting(change, out);
  if (!pass.finite) return not_finite();
  state.threshold = next_threshold(change, pass);
  ++state.records;
  out[0] = kept_kind(values_);
  const auto count = static_cast<std::uint32_t>(pass.count);
  std::memcpy(out.data() + 1, &count, sizeof(count));
  return std::max(pass.bytes, kHeaderBytes);
}

Result<std::vector<std::uint32_t>> TopkCodec::check(std::span<const std::byte> in,
                                                    std::size_t elements) const {
  if (in.size() < kHeaderBytes) return bad("no count");
  const std::optional<core::KeptValues> values = read_kept_kind(in[0]);
  if (!values) return bad("unknown kind of values");
  const std::uint64_t count = load<std::uint32_t>(in.data() + 1);
  // A value is a byte at least: nothing is allocated for more than has been sent.
  if (count > elements || count > in.size()) return bad(std::to_string(count) + " values");
  std::vector<std::uint32_t> indices(count);
  in = in.subspan(kHeaderBytes);
  std::uint64_t next = 0;
  for (std::size_t done = 0; done < count;) {
    const std::span<std::uint32_t> block =
        std::span(indices).subspan(done, std::min(kTopkBlock, count - done));
    if (in.size() < kTopkBlockHeader) return bad("no block header");
    const std::size_t bit_bytes = load<std::uint16_t>(in.data() + 4);
    const std::size_t value_bytes = kept_bytes(*values, block.size());
    block[0] = load<std::uint32_t>(in.data());
    if (block[0] < next || block[0] >= elements) return bad("index out of order or out of range");
    if (in.size() - kTopkBlockHeader < bit_bytes + value_bytes) return bad("too short");
    const std::span<const std::byte> bits = in.subspan(kTopkBlockHeader, bit_bytes);
    if (!rice_decode(bits, static_cast<unsigned>(in[6]), elements, block)) return bad("bad gaps");
    in = in.subspan(kTopkBlockHeader + bit_bytes);
    if (!check_kept(*values, kernels_, in.data(), block.size())) return bad("bad values");
    in = in.subspan(value_bytes);
    next = std::uint64_t{block.back()} + 1;
    done += block.size();
  }
  if (!in.empty()) return bad("too long");
  return indices;
}

Status TopkCodec::accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const {
  Result<std::vector<std::uint32_t>> indices = check(in, sum.size());
  if (!indices.ok()) return std::move(indices).status();
  const core::KeptValues values = *read_kept_kind(in[0]);
  const std::byte* from = in.data() + kHeaderBytes;
  float decoded[kTopkBlock];
  for (std::size_t done = 0; done < indices->size();) {
    const std::size_t n = std::min(kTopkBlock, indices->size() - done);
    from += kTopkBlockHeader + load<std::uint16_t>(from + 4);
    decode_kept(values, kernels_, from, n, decoded);
    for (std::size_t i = 0; i < n; ++i) sum[(*indices)[done + i]] += weight * decoded[i];
    from += kept_bytes(values, n);
    done += n;
  }
  return {};
}

Status TopkCodec::decode(std::span<const std::byte> in, std::span<float> out) const {
  // A refused record must leave `out` as it was, and zeros are needed before the first value.
  if (const auto indices = check(in, out.size()); !indices.ok()) return indices.status();
  std::fill(out.begin(), out.end(), 0.0f);
  return accumulate(in, 1.0f, out);
}

}  // namespace isthmus::compression
