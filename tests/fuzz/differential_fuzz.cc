// Every table of kernels against the scalar one, through every codec: the same numbers give the same record,
// the same difference the same record and the same view, and the same record, good or not, the same bits.

#include <optional>

#include "tests/fuzz/codecs.h"
#include "tests/fuzz/fuzz_input.h"

using namespace isthmus;

namespace {

struct Encoded {
  std::vector<std::byte> record;
  float threshold;
};

Encoded encode(const compression::Codec& codec, std::span<const float> values, float threshold) {
  compression::CodecState state;
  state.threshold = threshold;
  std::vector<std::byte> record(codec.max_encoded_bytes(values.size()));
  const std::size_t bytes = codec.encode(values, state, record);
  FUZZ_EXPECT(bytes <= record.size());
  record.resize(bytes);
  record.shrink_to_fit();
  return {std::move(record), state.threshold};
}

struct Decoded {
  Status status;
  std::vector<float> values;
  std::vector<float> sum;
};

Decoded decode(const compression::Codec& codec, std::span<const std::byte> record,
               std::span<const float> before, float weight) {
  Decoded decoded{{}, std::vector<float>(before.size()), {before.begin(), before.end()}};
  decoded.status = codec.decode(record, decoded.values);
  const Status added = codec.accumulate(record, weight, decoded.sum);
  FUZZ_EXPECT(added.code() == decoded.status.code());
  return decoded;
}

void compare(const core::CodecConfig& config, std::span<const std::byte> record,
             std::span<const float> before, float weight, bool must_decode) {
  std::optional<Decoded> scalar;
  for (const compression::Kernels* const kernels : fuzz::tables()) {
    Decoded decoded = decode(*compression::make_codec(config, *kernels), record, before, weight);
    FUZZ_EXPECT(!must_decode || decoded.status.ok());
    if (!scalar) {
      scalar = std::move(decoded);
      continue;
    }
    FUZZ_EXPECT(decoded.status.code() == scalar->status.code());
    FUZZ_EXPECT(fuzz::same_bits(decoded.values, scalar->values));
    FUZZ_EXPECT(fuzz::same_bits(decoded.sum, scalar->sum));
  }
}

void compare_encode(const core::CodecConfig& config, std::span<const float> values, float threshold,
                    float weight) {
  std::optional<Encoded> scalar;
  for (const compression::Kernels* const kernels : fuzz::tables()) {
    Encoded encoded = encode(*compression::make_codec(config, *kernels), values, threshold);
    if (!scalar) scalar = encoded;
    FUZZ_EXPECT(encoded.record == scalar->record);
    FUZZ_EXPECT(std::memcmp(&encoded.threshold, &scalar->threshold, sizeof(float)) == 0);
  }
  compare(config, scalar->record, values, weight, true);
}

// The difference of two halves, encoded while the view is moved.
void compare_delta(const core::CodecConfig& config, std::span<const float> numbers, float threshold) {
  const std::size_t elements = numbers.size() / 2;
  const std::span<const float> parameters = numbers.first(elements);
  const std::span<const float> view = numbers.last(elements);
  bool finite = true;
  for (std::size_t i = 0; i < elements; ++i) finite &= std::isfinite(parameters[i] - view[i]);
  std::optional<std::vector<std::byte>> scalar;
  for (const compression::Kernels* const kernels : fuzz::tables()) {
    const auto codec = compression::make_codec(config, *kernels);
    std::vector<std::byte> record(codec->max_encoded_bytes(elements));
    std::vector<float> moved(view.begin(), view.end());
    compression::CodecState state;
    state.threshold = threshold;
    const auto bytes = codec->encode_delta(parameters, moved, moved, state, record);
    FUZZ_EXPECT(bytes.ok() == finite);
    if (!finite) {
      FUZZ_EXPECT(fuzz::same_bits(moved, view));
      continue;
    }
    record.resize(*bytes);
    record.shrink_to_fit();
    if (!scalar) scalar = record;
    FUZZ_EXPECT(record == *scalar);
    // The other side does this, and then holds the same.
    std::vector<float> received(view.begin(), view.end());
    FUZZ_EXPECT(codec->accumulate(record, 1.0f, received).ok());
    FUZZ_EXPECT(fuzz::same_bits(received, moved));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::FuzzInput input(data, size);
  const auto mode = input.take<std::uint8_t>() % 3;
  const auto which = input.take<std::uint8_t>();
  const auto config = fuzz::codec_config(which, input.take<std::uint8_t>());
  // Most are not exact, so that a fused multiply-add would show.
  const float weight = static_cast<float>(input.take<std::int8_t>()) / 3.0f;
  const auto threshold = input.take<float>();  // Any value is valid, NaN too.
  if (mode == 0) {
    const auto record = input.take_bytes(input.left() / 2);
    const std::vector<float> before = input.take_floats(input.left());
    compare(config, record, before, weight, false);
    return 0;
  }
  // From an address that is not a vector's, more often than not.
  const std::size_t offset = which % 8;
  const std::vector<float> storage = input.take_floats(input.left());
  const auto values = std::span<const float>(storage).subspan(std::min(offset, storage.size()));
  if (mode == 1) {
    compare_encode(config, values, threshold, weight);
  } else {
    compare_delta(config, values, threshold);
  }
  return 0;
}
