// The records of every codec, as a peer may send them: any bytes at all, or a good record with some changes.
//
// A record is accepted or refused, by decode() and by accumulate() alike. A refused one changes nothing; an
// accepted one gives finite numbers, the same by both ways.

#include "tests/fuzz/codecs.h"
#include "tests/fuzz/fuzz_input.h"

using namespace isthmus;

namespace {

constexpr std::size_t kMaxElements = 3000;
constexpr float kBefore = 3.25f;

void decode(const compression::Codec& codec, std::span<const std::byte> record, std::size_t elements) {
  std::vector<float> decoded(elements, kBefore);
  std::vector<float> sum(elements, 0.0f);
  const Status status = codec.decode(record, decoded);
  const Status added = codec.accumulate(record, 1.0f, sum);
  FUZZ_EXPECT(status.code() == added.code());
  if (!status.ok()) {
    FUZZ_EXPECT(status.code() == ErrorCode::kCorruption);
    for (const float value : decoded) FUZZ_EXPECT(value == kBefore);
    for (const float value : sum) FUZZ_EXPECT(value == 0.0f);
    return;
  }
  for (const float value : decoded) FUZZ_EXPECT(std::isfinite(value));
  FUZZ_EXPECT(fuzz::same_bits(decoded, sum));
}

// What the codec makes of the first half of the input, changed as the second half says.
std::vector<std::byte> changed_record(const compression::Codec& codec, fuzz::FuzzInput& input,
                                      std::size_t& elements) {
  const std::vector<float> values = input.take_floats(input.left() / 2 / sizeof(float));
  elements = values.size();
  std::vector<std::byte> record(codec.max_encoded_bytes(values.size()));
  compression::CodecState state;
  record.resize(codec.encode(values, state, record));
  while (input.left() >= 4) {
    const std::size_t at = input.take<std::uint16_t>();
    const auto how = input.take<std::uint8_t>();
    const auto what = static_cast<std::byte>(input.take<std::uint8_t>());
    if (record.empty()) break;
    if (how % 8 == 0) {
      record.resize(at % (record.size() + 8));
    } else {
      record[at % record.size()] ^= what;
    }
  }
  record.shrink_to_fit();
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::FuzzInput input(data, size);
  const auto which = input.take<std::uint8_t>();
  const auto codec = compression::make_codec(fuzz::codec_config(which >> 1, input.take<std::uint8_t>()));
  // The codec of the wire's number is the one that decodes.
  const auto decoder = compression::find_decoder(static_cast<std::uint8_t>(codec->id()));
  FUZZ_EXPECT(decoder.ok());
  std::size_t elements = input.take<std::uint16_t>() % kMaxElements;
  if (which % 2 == 1) {
    const auto record = changed_record(*codec, input, elements);
    decode(**decoder, record, elements);
  } else {
    const auto record = input.take_bytes(input.left());
    decode(**decoder, record, elements);
  }
  return 0;
}
