// The kernels of every table that this CPU runs.

#include <functional>

#include "bench/support.h"
#include "compression/kernels/kernels.h"

namespace isthmus::bench {
namespace {

using compression::Kernels;

// What a kernel works on: numbers, the record of them (as large as any), sums.
struct Arrays {
  explicit Arrays(std::size_t n) : elements(n), in(gaussian(n)), other(n), bytes(n * sizeof(float)), sum(n) {}

  std::size_t elements;
  apps::BenchMemory<float> in;
  apps::BenchMemory<float> other;
  apps::BenchMemory<std::byte> bytes;
  apps::BenchMemory<float> sum;
};

void add_kernel(const Kernels& kernels, const std::string& name, const std::function<void(Arrays&)>& once) {
  add(std::string(kernels.name) + "/" + name, [once](benchmark::State& state, std::size_t n) {
    Arrays arrays(n);
    for (auto _ : state) {
      once(arrays);
      benchmark::ClobberMemory();
    }
    count_input(state, n);
  });
}

// An encoder, and the decoder of what it writes.
template <typename Encode>
void add_codec(const Kernels& kernels, const std::string& name, Encode encode, Kernels::Add decode) {
  const auto whole = [encode](Arrays& a) { encode(a.in.span().data(), a.elements, a.bytes.span().data()); };
  add_kernel(kernels, "encode_" + name, whole);
  add(std::string(kernels.name) + "/add_" + name, [whole, decode](benchmark::State& state, std::size_t n) {
    Arrays arrays(n);
    whole(arrays);
    for (auto _ : state) {
      decode(arrays.bytes.span().data(), n, 0.5f, arrays.sum.span().data());
      benchmark::ClobberMemory();
    }
    count_input(state, n);
  });
}

auto to_nearest(Kernels::EncodeBlocks encode) {
  return [encode](const float* in, std::size_t n, std::byte* out) { encode(in, n, nullptr, out); };
}

void add_table(const Kernels& k) {
  add_kernel(k, "finite_f32", [&k](Arrays& a) {
    benchmark::DoNotOptimize(k.finite_f32(std::as_bytes(a.in.span()).data(), a.elements));
  });
  add_kernel(k, "subtract", [&k](Arrays& a) {
    k.subtract(a.in.span().data(), a.other.span().data(), a.elements, a.sum.span().data());
  });
  add_kernel(k, "stream", [&k](Arrays& a) {
    k.stream(std::as_bytes(a.in.span()).data(), a.bytes.span().size(), a.bytes.span().data());
    k.finish_streaming();
  });
  for (const float threshold : {1.6449f, 2.5758f, 3.2905f}) {  // 10 %, 1 %, 0.1 % of the standard normal.
    add_kernel(k, "mark_" + std::to_string(threshold), [&k, threshold](Arrays& a) {
      k.mark(a.in.span().data(), nullptr, a.elements, threshold,
             reinterpret_cast<std::uint64_t*>(a.bytes.span().data()));
    });
  }
  add_codec(k, "f16", k.to_f16, k.add_f16);
  add_codec(k, "bf16", k.to_bf16, k.add_bf16);
  add_codec(k, "i8", to_nearest(k.encode_i8), k.add_i8);
  add_codec(k, "i4", to_nearest(k.encode_i4), k.add_i4);
  add_codec(k, "fp4", to_nearest(k.encode_fp4), k.add_fp4);
  add_codec(k, "sign", to_nearest(k.encode_sign), k.add_sign);
}

}  // namespace
}  // namespace isthmus::bench

int main(int argc, char** argv) {
  isthmus::bench::add_yardsticks();
  for (const auto* const kernels : isthmus::compression::available_kernels())
    isthmus::bench::add_table(*kernels);
  return isthmus::bench::run(argc, argv);
}
