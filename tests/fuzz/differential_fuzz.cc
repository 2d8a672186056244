// Every table of kernels against the scalar one, through every codec: the same numbers give the same record,
// and the same record, good or not, gives the same bits.

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::FuzzInput input(data, size);
  const auto which = input.take<std::uint8_t>();
  const auto config = fuzz::codec_config(which >> 1, input.take<std::uint8_t>());
  const std::size_t offset = input.take<std::uint8_t>() % 8;
  // Most are not exact, so that a fused multiply-add would show.
  const float weight = static_cast<float>(input.take<std::int8_t>()) / 3.0f;
  const auto threshold = input.take<float>();  // Any value is valid, NaN too.

  if (which % 2 == 1) {
    const auto record = input.take_bytes(input.left() / 2);
    const std::vector<float> before = input.take_floats(input.left());
    compare(config, record, before, weight, false);
    return 0;
  }
  // From an address that is not a vector's.
  std::vector<float> storage = input.take_floats(input.left());
  const std::span<const float> values =
      std::span<const float>(storage).subspan(std::min(offset, storage.size()));
  std::optional<Encoded> scalar;
  for (const compression::Kernels* const kernels : fuzz::tables()) {
    Encoded encoded = encode(*compression::make_codec(config, *kernels), values, threshold);
    if (!scalar) scalar = encoded;
    FUZZ_EXPECT(encoded.record == scalar->record);
    FUZZ_EXPECT(std::memcmp(&encoded.threshold, &scalar->threshold, sizeof(float)) == 0);
  }
  compare(config, scalar->record, values, weight, true);
  return 0;
}
