#include "compression/randk_codec.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "core/check.h"

namespace isthmus::compression {
namespace {

using Places = std::uint32_t[kKeptBlock];

// The places first, first + 1, ... of `count` among `elements`: stratum j is [j n / count, (j + 1) n /
// count), and word j of the use kPlaces says where in it, as a fraction of 2^32.
void draw_places(const Kernels& kernels, const RandomNumbers& numbers, std::uint64_t elements,
                 std::uint64_t count, std::size_t first, std::size_t n, Places& places) {
  std::uint32_t words[kKeptBlock];
  kernels.philox(numbers.counter(RandomUse::kPlaces, first / 4), numbers.philox_key(), (n + 3) / 4, words);
  std::uint64_t begin = first * elements / count;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t end = (first + i + 1) * elements / count;
    places[i] = static_cast<std::uint32_t>(begin + ((end - begin) * words[i] >> 32));
    begin = end;
  }
}

Status bad(std::string what) { return {ErrorCode::kCorruption, "randk record: " + std::move(what)}; }

}  // namespace

struct RandkCodec::Record {
  RandomNumbers numbers;
  core::KeptValues values;
  std::size_t count;
  const std::byte* blocks;
};

std::size_t RandkCodec::max_encoded_bytes(std::size_t elements) const noexcept {
  return kRandkHeaderBytes + kept_bytes(values_, kept_count(keep_, elements));
}

Result<std::size_t> RandkCodec::encode_change(const Change& change, CodecState& state,
                                              std::span<std::byte> out) const {
  ISTHMUS_CHECK(change.size() <= std::numeric_limits<std::uint32_t>::max());
  // Elements that are not kept must be finite too.
  if (change.is_difference() && !is_finite(change, kernels_)) return not_finite();
  copy_view(change);
  const Record record{RandomNumbers::of(state), values_, kept_count(keep_, change.size()),
                      out.data() + kRandkHeaderBytes};
  const auto count = static_cast<std::uint32_t>(record.count);
  record.numbers.write(out.data());
  out[kRandkKindAt] = kept_kind(values_);
  std::memcpy(out.data() + kRandkKindAt + 1, &count, sizeof(count));
  std::byte* to = out.data() + kRandkHeaderBytes;
  for (std::size_t first = 0; first < count; first += kKeptBlock) {
    const std::size_t n = std::min(kKeptBlock, count - first);
    Places places;
    float values[kKeptBlock];
    draw_places(kernels_, record.numbers, change.size(), count, first, n, places);
    for (std::size_t i = 0; i < n; ++i) values[i] = change.at(places[i]);
    encode_kept(values_, kernels_, values, n, to);
    to += kept_bytes(values_, n);
  }
  if (!change.moved.empty()) add(record, 1.0f, change.moved);
  ++state.records;
  return static_cast<std::size_t>(to - out.data());
}

Result<RandkCodec::Record> RandkCodec::read(std::span<const std::byte> in, std::size_t elements) const {
  if (in.size() < kRandkHeaderBytes) return bad("no header");
  const std::optional<core::KeptValues> values = read_kept_kind(in[kRandkKindAt]);
  if (!values) return bad("unknown kind of values");
  std::uint32_t count;
  std::memcpy(&count, in.data() + kRandkKindAt + 1, sizeof(count));
  if (count > elements) return bad(std::to_string(count) + " values");
  if (in.size() != kRandkHeaderBytes + kept_bytes(*values, count)) return bad("wrong size");
  in = in.subspan(kRandkHeaderBytes);
  for (std::size_t first = 0; first < count; first += kKeptBlock) {
    const std::size_t n = std::min<std::size_t>(kKeptBlock, count - first);
    if (!check_kept(*values, kernels_, in.data() + kept_bytes(*values, first), n)) return bad("bad values");
  }
  return Record{RandomNumbers::read(in.data() - kRandkHeaderBytes), *values, count, in.data()};
}

void RandkCodec::add(const Record& record, float weight, std::span<float> sum) const {
  for (std::size_t first = 0; first < record.count; first += kKeptBlock) {
    const std::size_t n = std::min(kKeptBlock, record.count - first);
    Places places;
    float decoded[kKeptBlock];
    draw_places(kernels_, record.numbers, sum.size(), record.count, first, n, places);
    decode_kept(record.values, kernels_, record.blocks + kept_bytes(record.values, first), n, decoded);
    for (std::size_t i = 0; i < n; ++i) sum[places[i]] += weight * decoded[i];
  }
}

Status RandkCodec::check(std::span<const std::byte> in, std::size_t elements) const {
  return read(in, elements).status();
}

Status RandkCodec::accumulate(std::span<const std::byte> in, float weight, std::span<float> sum) const {
  const Result<Record> record = read(in, sum.size());
  if (!record.ok()) return record.status();
  add(*record, weight, sum);
  return {};
}

Status RandkCodec::decode(std::span<const std::byte> in, std::span<float> out) const {
  const Result<Record> record = read(in, out.size());
  if (!record.ok()) return record.status();
  std::fill(out.begin(), out.end(), 0.0f);
  add(*record, 1.0f, out);
  return {};
}

}  // namespace isthmus::compression
