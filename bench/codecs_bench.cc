// Every codec of the config: encoding, encoding a difference, decoding into a sum.

#include "apps/bench_choice.h"
#include "bench/support.h"
#include "compression/codec.h"

namespace isthmus::bench {
namespace {

using Record = apps::BenchMemory<std::byte>;

void encode(benchmark::State& state, const core::CodecConfig& config, std::size_t elements) {
  const auto codec = compression::make_codec(config);
  const auto in = gaussian(elements);
  Record record(codec->max_encoded_bytes(elements));
  compression::CodecState memory;
  for (auto _ : state) benchmark::DoNotOptimize(codec->encode(in.span(), memory, record.span()));
  count_input(state, elements);
}

// The view stays where it is and a copy moves: else the next difference would be another.
void encode_delta(benchmark::State& state, const core::CodecConfig& config, std::size_t elements) {
  const auto codec = compression::make_codec(config);
  const auto in = gaussian(elements);
  const apps::BenchMemory<float> view(elements);
  apps::BenchMemory<float> moved(elements);
  Record record(codec->max_encoded_bytes(elements));
  compression::CodecState memory;
  for (auto _ : state) {
    const auto bytes = codec->encode_delta(in.span(), view.span(), moved.span(), memory, record.span());
    ISTHMUS_CHECK(bytes.ok());
  }
  count_input(state, elements);
}

void accumulate(benchmark::State& state, const core::CodecConfig& config, std::size_t elements) {
  const auto codec = compression::make_codec(config);
  const auto in = gaussian(elements);
  Record record(codec->max_encoded_bytes(elements));
  compression::CodecState memory;
  const std::size_t bytes = codec->encode(in.span(), memory, record.span());
  apps::BenchMemory<float> sum(elements);
  for (auto _ : state) ISTHMUS_CHECK(codec->accumulate(record.span().first(bytes), 0.5f, sum.span()).ok());
  count_input(state, elements);
}

void add_all() {
  add_yardsticks();
  const auto choices = apps::choose_codecs({}, {});
  ISTHMUS_CHECK(choices.ok());
  for (const apps::CodecChoice& choice : *choices) {
    const core::CodecConfig config = choice.config;
    add(choice.name + "/encode", [config](auto& state, std::size_t n) { encode(state, config, n); });
    add(choice.name + "/encode_delta",
        [config](auto& state, std::size_t n) { encode_delta(state, config, n); });
    add(choice.name + "/accumulate", [config](auto& state, std::size_t n) { accumulate(state, config, n); });
  }
}

}  // namespace
}  // namespace isthmus::bench

int main(int argc, char** argv) {
  isthmus::bench::add_all();
  return isthmus::bench::run(argc, argv);
}
