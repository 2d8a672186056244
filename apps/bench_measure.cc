#include "apps/bench_measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "compression/codec.h"
#include "compression/marks.h"
#include "compression/threshold.h"
#include "core/units.h"

namespace isthmus::apps {
namespace {

std::size_t largest_record(std::size_t elements, std::span<const CodecChoice> codecs) {
  std::size_t bytes = elements * sizeof(float);  // Indices of a selection go there too.
  for (const CodecChoice& choice : codecs)
    bytes = std::max(bytes, compression::make_codec(choice.config)->max_encoded_bytes(elements));
  return bytes;
}

std::size_t count_of_share(double share, std::size_t elements) {
  const double count = std::round(share * static_cast<double>(elements));
  return static_cast<std::size_t>(std::clamp(count, 1.0, static_cast<double>(elements)));
}

void copy_magnitudes(std::span<const float> in, std::span<float> out) {
  std::transform(in.begin(), in.end(), out.begin(), [](float value) { return std::fabs(value); });
}

// The value of the `rank`-th largest (from 1) comes to its place.
float put_in_place(std::span<float> magnitudes, std::size_t rank) {
  const auto place = magnitudes.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(magnitudes.begin(), place, magnitudes.end(), std::greater<>());
  return *place;
}

}  // namespace

double nmse_of(std::span<const float> in, std::span<const float> decoded) {
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double lost = double{in[i]} - decoded[i];
    error += lost * lost;
    power += double{in[i]} * in[i];
  }
  return power > 0 ? error / power : 0;
}

CodecBench::CodecBench(std::size_t elements, std::span<const CodecChoice> codecs)
    : input_(elements), sum_(elements), work_(elements), record_(largest_record(elements, codecs)) {}

Result<CodecRow> CodecBench::measure(const CodecChoice& choice, const BackendChoice& backend,
                                     BenchTimer& timer) {
  const auto codec = compression::make_codec(choice.config, *backend.kernels);
  const std::span<const float> in = input_.span();
  const std::span<std::byte> out = record_.span();
  CodecRow row{choice.name, backend.name, {}, {}, {}, 0, 0};

  compression::CodecState state;  // Kept from one call to the next, as a sender does.
  std::size_t bytes = 0;
  row.encode = timer.measure([&] { bytes = codec->encode(in, state, out); });
  const std::span<const std::byte> record = out.first(bytes);

  std::ranges::fill(sum_.span(), 0.0f);
  Status status;
  row.decode = timer.measure([&] {
    if (status.ok()) status = codec->accumulate(record, 1.0f, sum_.span());
  });
  if (status.ok()) status = codec->decode(record, work_.span());
  if (!status.ok()) return Status(ErrorCode::kInternal, choice.name + ": " + status.message());
  row.bytes_per_element = static_cast<double>(bytes) / static_cast<double>(in.size());
  row.nmse = nmse_of(in, work_.span());
  return row;
}

Result<PathRow> CodecBench::measure_delta(const CodecChoice& choice, const BackendChoice& backend,
                                          BenchTimer& timer) {
  const auto codec = compression::make_codec(choice.config, *backend.kernels);
  const std::span<float> view = sum_.span();
  compression::CodecState state;
  Status status;
  const auto pass = [&] {
    const auto bytes = codec->encode_delta(input_.span(), view, view, state, record_.span());
    if (!bytes.ok()) status = bytes.status();
  };
  // The same change each time: a view that had caught up would leave another kind of numbers to encode.
  const Pace pace = timer.measure(pass, [&] { std::ranges::fill(view, 0.0f); });
  if (!status.ok()) return Status(ErrorCode::kInternal, choice.name + ": " + status.message());
  return PathRow{"delta + encode + view", choice.name, backend.name, {}, pace};
}

float CodecBench::threshold_of(double keep) {
  copy_magnitudes(input_.span(), work_.span());
  return put_in_place(work_.span(), count_of_share(keep, work_.span().size()));
}

PathRow CodecBench::measure_select(double keep, const BackendChoice& backend, BenchTimer& timer) {
  const std::span<const float> in = input_.span();
  const float threshold = threshold_of(keep);
  auto* const indices = reinterpret_cast<std::uint32_t*>(record_.span().data());
  const Pace pace = timer.measure([&] {
    std::uint32_t* next = indices;
    compression::for_each_mark({in}, *backend.kernels, threshold, [&](std::size_t index) {
      *next++ = static_cast<std::uint32_t>(index);
      return true;
    });
  });
  return {"select " + core::exact_share(keep), {}, backend.name, {}, pace};
}

PathRow CodecBench::measure_estimate(double keep, BenchTimer& timer) {
  const std::size_t rank = count_of_share(keep, input_.span().size());
  std::uint64_t call = 0;
  float found = 0;
  const Pace pace =
      timer.measure([&] { found += compression::sampled_threshold({input_.span()}, rank, ++call); });
  return {"estimate " + core::exact_share(keep), {}, "cpu", {}, pace};
}

PathRow CodecBench::measure_nth_element(double keep, BenchTimer& timer) {
  const std::size_t rank = count_of_share(keep, input_.span().size());
  float found = 0;
  const Pace pace = timer.measure([&] { found += put_in_place(work_.span(), rank); },
                                  [&] { copy_magnitudes(input_.span(), work_.span()); });
  return {"std::nth_element " + core::exact_share(keep), {}, "cpu", {}, pace};
}

PathRow CodecBench::measure_copy(BenchTimer& timer) {
  const Pace pace = timer.measure(
      [&] { std::memcpy(work_.span().data(), input_.span().data(), input_.span().size_bytes()); });
  return {"memcpy", {}, "cpu", {}, pace};
}

}  // namespace isthmus::apps
