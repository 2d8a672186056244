// Every instruction set of this CPU against the scalar specification, bit for bit.

#include <gtest/gtest.h>

#include <cfloat>
#include <cstring>
#include <limits>
#include <utility>

#include "compression/kernels/blocks.h"
#include "compression/kernels/float16.h"
#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

constexpr std::size_t kMaxLength = 1100;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class CpuKernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& cpu_ = *GetParam();
  const Kernels& scalar_ = scalar_kernels();

  // Zeros, subnormals, limits, ties, and whatever else 32 bits say that is finite.
  static std::vector<float> mixed(std::size_t n) {
    const float special[] = {0.0f,        -0.0f,        FLT_MAX,  -FLT_MAX, FLT_MIN,       1e-45f,
                             -1e-40f,     65504.0f,     65520.0f, 1e-7f,    2.9802322e-8f, 1.0f,
                             1.00048828f, -1.00146484f, 0.5f,     6.1e-5f};
    std::mt19937 random(17);
    std::vector<float> values(n);
    for (float& value : values) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (random() % 2 == 0) value = special[random() % std::size(special)];
      if (!std::isfinite(value)) value = 1.0f;
    }
    return values;
  }

  template <typename Body>
  void at_all_lengths_and_offsets(Body body) {
    for (std::size_t n = 0; n <= kMaxLength; ++n) {
      body(n, n % 5);
      if (HasFatalFailure()) return;
    }
  }

  using Narrow = void (*)(const float*, std::size_t, std::byte*);
  void compare_narrow(Narrow cpu, Narrow scalar, std::size_t width) {
    const std::vector<float> in = mixed(kMaxLength + 8);
    at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
      Bytes a(width * n + 8, std::byte{0xee});
      Bytes b = a;
      cpu(in.data() + offset, n, a.data() + offset);
      scalar(in.data() + offset, n, b.data() + offset);
      ASSERT_EQ(a, b) << n;
    });
  }

  using Add = void (*)(const std::byte*, std::size_t, float, float*);
  void compare_add(Add cpu, Add scalar, const Bytes& record) {
    const std::vector<float> start = mixed(kMaxLength + 8);
    at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
      std::vector<float> a = start;
      std::vector<float> b = start;
      cpu(record.data() + offset, n, -0.3f, a.data() + offset);
      scalar(record.data() + offset, n, -0.3f, b.data() + offset);
      ASSERT_TRUE(same_bits(a, b)) << n;
    });
  }
};

Bytes random_record(std::size_t size) {
  std::mt19937 random(23);
  Bytes record(size);
  for (std::byte& value : record) value = static_cast<std::byte>(random() % 0x7b);  // No Inf, no NaN.
  for (std::size_t i = 0; i < size; i += 7) record[i] |= std::byte{0x80};           // Some signs.
  for (std::size_t i = 0; i + 8 < size; i += 96)
    std::fill_n(record.begin() + static_cast<long>(i), 8, std::byte{});
  return record;
}

TEST_P(CpuKernelsTest, NarrowsTheSame) {
  compare_narrow(cpu_.to_f16, scalar_.to_f16, 2);
  compare_narrow(cpu_.to_bf16, scalar_.to_bf16, 2);
}

TEST_P(CpuKernelsTest, WidensEveryPatternTheSame) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t bits = 0; bits < all.size(); ++bits) all[bits] = static_cast<std::uint16_t>(bits);
  const auto record = std::as_bytes(std::span(all));
  for (const auto kernel : {&Kernels::add_f16, &Kernels::add_bf16}) {
    std::vector<float> a(all.size()), b(all.size());
    (cpu_.*kernel)(record.data(), all.size(), 1.0f, a.data());
    (scalar_.*kernel)(record.data(), all.size(), 1.0f, b.data());
    EXPECT_EQ(bits_of(a), bits_of(b));
  }
}

// Inputs of every size that a block can have: zeros, subnormals, ties, the largest.
std::vector<std::vector<float>> block_inputs() {
  std::vector<std::vector<float>> inputs{gaussian(kMaxLength + 8, 5), laplace(kMaxLength + 8),
                                         awkward(kMaxLength + 8)};
  for (const float scale : {1e-44f, 1e-38f, 1e-36f, 1e36f, 3e38f}) {
    inputs.push_back(gaussian(kMaxLength + 8, 6, 1.0f));
    for (float& value : inputs.back()) value = std::clamp(value, -1.0f, 1.0f) * scale;
  }
  for (const float same : {0.0f, -0.0f, 1.0f, -1e-45f, FLT_MAX}) inputs.emplace_back(kMaxLength + 8, same);
  std::vector<float> ties(kMaxLength + 8);
  for (std::size_t i = 0; i < ties.size(); ++i)
    ties[i] = static_cast<float>(i % 15) - 7.0f + 0.5f * (i % 2 == 0);
  for (std::size_t i = 0; i < ties.size(); i += 64) ties[i] = 7.0f;
  inputs.push_back(ties);
  return inputs;
}

TEST_P(CpuKernelsTest, BlockCodecsAreTheSame) {
  std::mt19937 generator(8);
  std::vector<std::uint16_t> random(kMaxLength + 8);
  for (std::uint16_t& word : random) word = static_cast<std::uint16_t>(generator());
  const std::vector<float> start = gaussian(kMaxLength + 8, 9);
  const std::pair<Kernels::EncodeBlocks Kernels::*, Kernels::Add Kernels::*> codecs[] = {
      {&Kernels::encode_i8, &Kernels::add_i8},
      {&Kernels::encode_i4, &Kernels::add_i4},
      {&Kernels::encode_fp4, &Kernels::add_fp4},
      {&Kernels::encode_sign, &Kernels::add_sign}};
  for (const std::vector<float>& in : block_inputs()) {
    for (const auto& [encode, add] : codecs) {
      at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
        for (const std::uint16_t* words :
             {static_cast<const std::uint16_t*>(nullptr), std::as_const(random).data() + offset}) {
          Bytes a(2 * n + 32, std::byte{0xee});
          Bytes b = a;
          (cpu_.*encode)(in.data() + offset, n, words, a.data() + offset);
          (scalar_.*encode)(in.data() + offset, n, words, b.data() + offset);
          ASSERT_EQ(a, b) << n;
          std::vector<float> x = start;
          std::vector<float> y = start;
          (cpu_.*add)(a.data() + offset, n, -0.7f, x.data() + offset);
          (scalar_.*add)(a.data() + offset, n, -0.7f, y.data() + offset);
          ASSERT_TRUE(same_bits(x, y)) << n;
        }
      });
    }
  }
}

// Not only what an encoder writes: any codes under the scales that a decoder lets through.
TEST_P(CpuKernelsTest, AnyCodesAreReadTheSame) {
  std::mt19937 random(23);
  const std::vector<float> start = gaussian(kMaxLength);
  const auto compare = [&](Kernels::Add cpu, Kernels::Add scalar, std::size_t block, Bytes scale) {
    Bytes record(2 * kMaxLength);
    for (std::byte& value : record) value = static_cast<std::byte>(random());
    for (std::size_t at = 0; at + scale.size() < record.size(); at += block) {
      std::copy(scale.begin(), scale.end(), record.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::vector<float> a = start;
    std::vector<float> b = start;
    cpu(record.data(), kMaxLength, 0.5f, a.data());
    scalar(record.data(), kMaxLength, 0.5f, b.data());
    EXPECT_TRUE(same_bits(a, b));
  };
  for (const Bytes& scale : {bytes({0, 0, 0, 0}), bytes({0, 0, 0x80, 0}), bytes({0xcd, 0xcc, 0x4c, 0x3e})}) {
    compare(cpu_.add_i8, scalar_.add_i8, 260, scale);
    compare(cpu_.add_sign, scalar_.add_sign, 68, scale);
  }
  for (const Bytes& scale : {bytes({0, 0}), bytes({0x80, 0x03}), bytes({0x4d, 0x3e}), bytes({0x00, 0x7b})}) {
    compare(cpu_.add_i4, scalar_.add_i4, 34, scale);
    compare(cpu_.add_fp4, scalar_.add_fp4, 34, scale);
  }
}

TEST_P(CpuKernelsTest, AddsTheSame) {
  const std::vector<float> floats = mixed(kMaxLength + 8);
  const auto raw = std::as_bytes(std::span(floats));
  Bytes aligned(raw.begin(), raw.end());
  // At an odd address the bytes are other floats, some of them NaN: shift them along with the start.
  for (std::size_t shift = 0; shift < 4; ++shift) {
    Bytes moved(shift);
    moved.insert(moved.end(), aligned.begin(), aligned.end());
    for (const std::size_t n : {0, 1, 7, 8, 9, 33, 1100}) {
      std::vector<float> a = mixed(kMaxLength);
      std::vector<float> b = a;
      cpu_.add_f32(moved.data() + shift, n, 0.3f, a.data());
      scalar_.add_f32(moved.data() + shift, n, 0.3f, b.data());
      ASSERT_EQ(bits_of(a), bits_of(b)) << n;
    }
  }
  const Bytes record = random_record(2 * kMaxLength + 8);
  compare_add(cpu_.add_f16, scalar_.add_f16, record);
  compare_add(cpu_.add_bf16, scalar_.add_bf16, record);
}

TEST_P(CpuKernelsTest, SubtractsTheSameAndSeesABadElementAtEveryPlace) {
  const std::vector<float> a = mixed(kMaxLength + 8);
  const std::vector<float> b = gaussian(kMaxLength + 8);
  at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
    std::vector<float> x(n + 1, 7.0f), y(n + 1, 7.0f);
    ASSERT_TRUE(cpu_.subtract(a.data() + offset, b.data() + offset, n, x.data()));
    ASSERT_TRUE(scalar_.subtract(a.data() + offset, b.data() + offset, n, y.data()));
    ASSERT_TRUE(same_bits(x, y)) << n;
  });
  const float inf = std::numeric_limits<float>::infinity();
  for (std::size_t n = 1; n <= 70; ++n) {
    for (std::size_t bad = 0; bad < n; ++bad) {
      std::vector<float> x(n, -FLT_MAX), zeros(n, 0.0f), out(n);
      ASSERT_TRUE(cpu_.finite_f32(std::as_bytes(std::span(x)).data(), n));
      ASSERT_TRUE(cpu_.subtract(x.data(), zeros.data(), n, out.data()));
      x[bad] = bad % 2 == 0 ? inf : -std::nanf("1");
      ASSERT_FALSE(cpu_.finite_f32(std::as_bytes(std::span(x)).data(), n));
      ASSERT_FALSE(cpu_.subtract(x.data(), zeros.data(), n, out.data()));
      ASSERT_FALSE(cpu_.subtract(zeros.data(), x.data(), n, out.data()));
    }
  }
}

TEST_P(CpuKernelsTest, StreamsToAnyAddress) {
  const std::vector<float> floats = gaussian(300);
  const auto in = std::as_bytes(std::span(floats));
  for (std::size_t n = 0; n <= 1100; n += n < 200 ? 1 : 37) {
    for (std::size_t offset = 0; offset < 70; offset += 3) {
      Bytes out(n + 200, std::byte{0xee});
      Bytes expected = out;
      cpu_.stream(in.data() + offset % 5, n, out.data() + offset);
      cpu_.finish_streaming();
      std::copy_n(in.begin() + static_cast<long>(offset % 5), n,
                  expected.begin() + static_cast<long>(offset));
      ASSERT_EQ(out, expected) << n << " " << offset;
    }
  }
}

TEST_P(CpuKernelsTest, MarksTheSame) {
  std::vector<float> in = gaussian(kMaxLength + 8, 6);
  const std::vector<float> view = gaussian(kMaxLength + 8, 7);
  in[40] = 1.5f;  // Exactly at the threshold.
  in[41] = std::nanf("");
  in[42] = -std::numeric_limits<float>::infinity();
  in[43] = 1e-45f;
  for (const float threshold : {1e-45f, 1.5f, 9.0f, FLT_MAX}) {
    at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
      for (const float* b : {static_cast<const float*>(nullptr), view.data() + offset}) {
        std::vector<std::uint64_t> x(n / 64 + 2, 77), y(n / 64 + 2, 77);
        cpu_.mark(in.data() + offset, b, n, threshold, x.data());
        scalar_.mark(in.data() + offset, b, n, threshold, y.data());
        ASSERT_EQ(x, y) << n;
      }
    });
  }
}

TEST_P(CpuKernelsTest, FlipsTheSame) {
  const std::vector<float> in = mixed(kMaxLength + 8);
  std::vector<std::uint32_t> signs(kMaxLength / 32 + 1);
  std::mt19937 random(3);
  for (std::uint32_t& word : signs) word = random();
  at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
    std::vector<float> a(n + 1, 7.0f), b(n + 1, 7.0f);
    cpu_.flip(in.data() + offset, signs.data(), n, 60000.0f, 0.03125f, a.data());
    scalar_.flip(in.data() + offset, signs.data(), n, 60000.0f, 0.03125f, b.data());
    ASSERT_TRUE(same_bits(a, b)) << n;
  });
}

TEST_P(CpuKernelsTest, RotatesTheSame) {
  for (std::vector<float> a : {gaussian(kRotated), laplace(kRotated), gaussian(kRotated, 2, 1e-42f)}) {
    std::vector<float> b = a;
    cpu_.hadamard(a.data());
    scalar_.hadamard(b.data());
    EXPECT_EQ(bits_of(a), bits_of(b));
  }
}

TEST_P(CpuKernelsTest, DrawsTheSame) {
  for (const core::PhiloxCounter& counter :
       {core::PhiloxCounter{0, 0, 0, 0}, {0xfffffff0, 7, 0xffffffff, 3}}) {
    for (std::size_t blocks = 0; blocks < 70; ++blocks) {
      std::vector<std::uint32_t> a(4 * blocks + 1, 5), b(4 * blocks + 1, 5);
      cpu_.philox(counter, {0xdeadbeef, 0xfedcba98}, blocks, a.data());
      scalar_.philox(counter, {0xdeadbeef, 0xfedcba98}, blocks, b.data());
      ASSERT_EQ(a, b) << blocks;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, CpuKernelsTest, testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(AvailableKernelsTest, ScalarIsFirstAndTheBestIsThere) {
  const std::vector<const Kernels*> tables = available_kernels();
  ASSERT_GE(tables.size(), 1u);
  EXPECT_EQ(tables[0], &scalar_kernels());
  EXPECT_NE(std::find(tables.begin(), tables.end(), &best_kernels()), tables.end());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(tables[i]->name, tables[k]->name);
  }
}

}  // namespace
}  // namespace isthmus::compression
