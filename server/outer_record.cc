#include "server/outer_record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/check.h"

namespace isthmus::server {

const compression::Codec& lossless_codec() {
  return **compression::find_decoder(static_cast<std::uint8_t>(compression::CodecId::kFp32));
}

Result<core::SharedBytes> encode_record(const compression::Codec& codec, compression::CodecState& state,
                                        std::span<const float> parameters, std::span<const float> view,
                                        std::span<float> moved) {
  core::Buffer buffer(codec.max_encoded_bytes(parameters.size()));
  const auto bytes = codec.encode_delta(parameters, view, moved, state, buffer.writable());
  if (!bytes.ok()) return bytes.status();
  // A record may stay unacknowledged for as long as a link is down: a small one must not hold a large buffer.
  if (*bytes < buffer.writable().size() / 2) return core::copy_bytes(buffer.writable().first(*bytes));
  return std::move(buffer).share(*bytes);
}

Status check_record(std::uint8_t codec, const core::SharedBytes& record, std::size_t elements) {
  const Result<const compression::Codec*> decoder = compression::find_decoder(codec);
  if (!decoder.ok()) return decoder.status();
  // Decoders look at the whole record before they write: into scratch, since there is no other way to ask.
  const auto scratch = std::make_unique_for_overwrite<float[]>(elements);
  return (*decoder)->decode(record.view, {scratch.get(), elements});
}

void take_back(std::uint8_t codec, const core::SharedBytes& record, std::span<float> values) {
  const Result<const compression::Codec*> decoder = compression::find_decoder(codec);
  ISTHMUS_CHECK(decoder.ok() && (*decoder)->accumulate(record.view, -1.0f, values).ok());
}

Result<core::VersionedFloats::Reference> moved_by(std::uint8_t codec, const core::SharedBytes& record,
                                                  std::span<const float> from) {
  const Result<const compression::Codec*> decoder = compression::find_decoder(codec);
  if (!decoder.ok()) return decoder.status();
  auto moved = std::make_shared_for_overwrite<float[]>(from.size());
  const std::span<float> to(moved.get(), from.size());
  std::copy(from.begin(), from.end(), to.begin());
  ISTHMUS_RETURN_IF_ERROR((*decoder)->accumulate(record.view, 1.0f, to));
  if (!compression::all_finite(to)) return Status(ErrorCode::kCorruption, "a delta that overflows");
  return core::VersionedFloats::Reference(std::move(moved));
}

Result<core::VersionedFloats::Reference> read_values(const core::SharedBytes& values, std::size_t elements) {
  if (values.size() != elements * sizeof(float))
    return Status(ErrorCode::kProtocol, "a reset of " + std::to_string(values.size()) + " bytes for " +
                                            std::to_string(elements) + " elements");
  core::VersionedFloats::Reference floats;
  if (reinterpret_cast<std::uintptr_t>(values.view.data()) % alignof(float) == 0) {
    floats = {values.owner, reinterpret_cast<const float*>(values.view.data())};
  } else {
    auto copy = std::make_shared_for_overwrite<float[]>(elements);
    std::memcpy(copy.get(), values.view.data(), values.size());
    floats = std::move(copy);
  }
  if (!compression::all_finite({floats.get(), elements}))
    return Status(ErrorCode::kCorruption, "a reset with NaN or Inf");
  return floats;
}

// Four sums run side by side. Each step, such as sum * odd + bits, can be undone, so whatever differs at
// one place stays different to the end.
std::uint64_t anchor_checksum(std::span<const float> anchor) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  constexpr std::size_t kLanes = 4;
  std::array<std::uint64_t, kLanes> sums{1, 2, 3, 4};
  std::size_t i = 0;
  for (; i + kLanes <= anchor.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      sums[lane] = sums[lane] * kOdd + std::bit_cast<std::uint32_t>(anchor[i + lane]);
  std::uint64_t all = anchor.size();
  for (; i < anchor.size(); ++i) all = all * kOdd + std::bit_cast<std::uint32_t>(anchor[i]);
  for (std::uint64_t sum : sums) {
    all *= kOdd;  // So that no element weighs the same as one of another lane.
    all = (all ^ all >> 32) * kOdd + sum;
  }
  return all;
}

}  // namespace isthmus::server
