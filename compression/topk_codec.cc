#include "compression/topk_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "compression/kernels/codes.h"
#include "compression/marks.h"
#include "compression/rice.h"
#include "compression/topk_pass.h"
#include "compression/topk_writer.h"
#include "core/check.h"

namespace isthmus::compression {
namespace {

constexpr std::size_t kAllTies = std::numeric_limits<std::size_t>::max();

template <typename T>
T load(const std::byte* in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

std::size_t blocks_of(std::size_t count) { return count / kTopkBlock + (count % kTopkBlock != 0); }

Status bad(std::string what) { return {ErrorCode::kCorruption, "topk record: " + std::move(what)}; }

}  // namespace

struct TopkCodec::Written {
  TopkPass pass;
  std::size_t bytes = 0;  // 0: it did not fit.
};

TopkTarget topk_target(double keep, core::KeptValues values, std::size_t elements) noexcept {
  const std::size_t wanted = kept_count(keep, elements);
  return {elements, wanted, most_kept(wanted, elements), least_kept(values)};
}

// All blocks coded with one parameter b take at most elements / 2^b zeros and count * (1 + b) other bits;
// each with its best one takes no more.
std::size_t TopkCodec::max_encoded_bytes(std::size_t elements) const noexcept {
  const std::size_t count = target(elements).most;
  if (count == 0) return kTopkHeaderBytes;
  const auto parameter = static_cast<std::size_t>(std::bit_width(elements / count) - 1);
  const std::size_t bits = (elements >> parameter) + count * (1 + parameter);
  return kTopkHeaderBytes + blocks_of(count) * (kTopkBlockHeader + 1) + bits / 8 + kept_bytes(values_, count);
}

TopkCodec::Written TopkCodec::run(const Change& change, const Cut& cut, std::span<std::byte> out) const {
  const TopkTarget target = this->target(change.size());
  const std::uint32_t at_threshold = std::bit_cast<std::uint32_t>(cut.magnitude);
  TopkWriter writer(values_, kernels_, target.most, out.data() + kTopkHeaderBytes, change.moved);
  TopkPass pass{.threshold = cut.magnitude};
  std::size_t ties = cut.ties;
  pass.looked_at = for_each_mark(change, kernels_, cut.magnitude, [&](std::size_t index) {
    const float value = change.at(index);
    const std::uint32_t bits = magnitude_bits(value);
    pass.finite = is_finite(value) || !change.is_difference();
    if (bits == at_threshold) {
      if (ties == 0) return true;
      --ties;
    }
    pass.too_many = pass.count == target.most;
    if (pass.too_many || !pass.finite) return false;
    ++pass.count;
    pass.log_sum += bits - at_threshold;
    writer.add(static_cast<std::uint32_t>(index), value);
    return true;
  });
  if (fits(pass, target)) return {pass, kTopkHeaderBytes + writer.finish()};
  writer.undo();
  return {pass};
}

// At most two tries; without bytes when neither kept the right number.
TopkCodec::Written TopkCodec::by_threshold(const Change& change, const CodecState& state,
                                           std::span<std::byte> out) const {
  const TopkTarget target = this->target(change.size());
  const bool large = change.size() >= kSampleElements;
  float threshold = state.threshold;
  const bool known = is_usable(threshold, target);
  const auto sampled = [&] {
    return std::max(sampled_threshold(change, target.wanted, state.records), target.least);
  };
  Written written;
  if (target.wanted < kFewestByThreshold || (!known && !large)) return written;
  if (!known) threshold = sampled();
  for (int tries = 2; tries > 0 && threshold > 0; --tries) {
    written = run(change, {threshold, kAllTies}, out);
    if (written.bytes > 0 || !written.pass.finite || tries == 1) break;
    threshold = is_telling(written.pass, target) || !large ? next_threshold(written.pass, target) : sampled();
  }
  return written;
}

TopkCodec::Written TopkCodec::by_counting(const Change& change, std::span<std::byte> out) const {
  const TopkTarget target = this->target(change.size());
  if (target.wanted == 0) return {};
  const std::optional<Cut> cut = exact_cut(change, target.wanted, kernels_);
  if (!cut) return {{.finite = false}};
  return run(change, cut->magnitude >= target.least ? *cut : Cut{target.least, kAllTies}, out);
}

Result<std::size_t> TopkCodec::encode_change(const Change& change, CodecState& state,
                                             std::span<std::byte> out) const {
  ISTHMUS_CHECK(change.size() <= std::numeric_limits<std::uint32_t>::max());
  copy_view(change);
  Written written = by_threshold(change, state, out);
  if (written.bytes == 0 && written.pass.finite) written = by_counting(change, out);
  if (!written.pass.finite) return not_finite();
  state.threshold = next_threshold(written.pass, target(change.size()));
  ++state.records;
  out[0] = kept_kind(values_);
  const auto count = static_cast<std::uint32_t>(written.pass.count);
  std::memcpy(out.data() + 1, &count, sizeof(count));
  return std::max(written.bytes, kTopkHeaderBytes);
}

Result<std::vector<std::uint32_t>> TopkCodec::read(std::span<const std::byte> in,
                                                   std::size_t elements) const {
  if (in.size() < kTopkHeaderBytes) return bad("no count");
  const std::optional<core::KeptValues> values = read_kept_kind(in[0]);
  if (!values) return bad("unknown kind of values");
  const std::uint64_t count = load<std::uint32_t>(in.data() + 1);
  // A value is a byte at least: nothing is allocated for more than has been sent.
  if (count > elements || count > in.size()) return bad(std::to_string(count) + " values");
  std::vector<std::uint32_t> indices(count);
  in = in.subspan(kTopkHeaderBytes);
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

Status TopkCodec::check(std::span<const std::byte> in, std::size_t elements) const {
  return read(in, elements).status();
}

Status TopkCodec::accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const {
  Result<std::vector<std::uint32_t>> indices = read(in, sum.size());
  if (!indices.ok()) return std::move(indices).status();
  const core::KeptValues values = *read_kept_kind(in[0]);
  const std::byte* from = in.data() + kTopkHeaderBytes;
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
  if (Status status = check(in, out.size()); !status.ok()) return status;
  std::fill(out.begin(), out.end(), 0.0f);
  return accumulate(in, 1.0f, out);
}

}  // namespace isthmus::compression
