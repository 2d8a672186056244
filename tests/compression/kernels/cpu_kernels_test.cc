// Every instruction set of this CPU against the scalar specification, bit for bit.

#include <gtest/gtest.h>

#include <cfloat>
#include <cstring>
#include <limits>

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

TEST_P(CpuKernelsTest, WidensEveryHalfTheSame) {
  std::vector<std::uint16_t> finite;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    if ((bits & kHalfExponent) != kHalfExponent) finite.push_back(static_cast<std::uint16_t>(bits));
  }
  const auto record = std::as_bytes(std::span(finite));
  std::vector<float> a(finite.size());
  std::vector<float> b(finite.size());
  cpu_.add_f16(record.data(), finite.size(), 1.0f, a.data());
  scalar_.add_f16(record.data(), finite.size(), 1.0f, b.data());
  EXPECT_EQ(bits_of(a), bits_of(b));
}

TEST_P(CpuKernelsTest, QuantisesTheSame) {
  std::vector<float> in = gaussian(kMaxLength + 8, 5, 50.0f);
  for (std::size_t i = 0; i < in.size(); i += 3) in[i] = std::round(in[i]) + 0.5f;
  for (const float inverse : {1.0f, 0.37f, 0.0f, 3e30f}) {
    at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
      Bytes a(n + 8, std::byte{0xee});
      Bytes b = a;
      cpu_.to_i8(in.data() + offset, n, inverse, a.data() + offset);
      scalar_.to_i8(in.data() + offset, n, inverse, b.data() + offset);
      ASSERT_EQ(a, b) << n;
    });
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

TEST_P(CpuKernelsTest, AddsCodesTheSame) {
  const Bytes record = random_record(kMaxLength + 8);
  const std::vector<float> start = mixed(kMaxLength + 8);
  for (const float scale : {0.0f, FLT_MIN, 0.01f, FLT_MAX / 128}) {
    at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
      std::vector<float> a = start;
      std::vector<float> b = start;
      cpu_.add_i8(record.data() + offset, n, scale, 0.7f, a.data() + offset);
      scalar_.add_i8(record.data() + offset, n, scale, 0.7f, b.data() + offset);
      ASSERT_TRUE(same_bits(a, b)) << n;
    });
  }
}

TEST_P(CpuKernelsTest, FindsTheSameMaximum) {
  const std::vector<float> in = mixed(kMaxLength + 8);
  const std::vector<float> small = gaussian(kMaxLength + 8);
  at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
    for (const auto& values : {std::span(in), std::span(small)}) {
      ASSERT_EQ(cpu_.max_abs(values.data() + offset, n), scalar_.max_abs(values.data() + offset, n)) << n;
    }
  });
}

TEST_P(CpuKernelsTest, SeesABadElementAtEveryPlace) {
  for (std::size_t n = 1; n <= 70; ++n) {
    for (std::size_t bad = 0; bad < n; ++bad) {
      std::vector<float> wide(n, -FLT_MAX);
      std::vector<std::uint16_t> half(n, 0xfbff);
      std::vector<std::uint16_t> bf16(n, 0xff7f);
      ASSERT_TRUE(cpu_.finite_f32(std::as_bytes(std::span(wide)).data(), n));
      ASSERT_TRUE(cpu_.finite_f16(std::as_bytes(std::span(half)).data(), n));
      ASSERT_TRUE(cpu_.finite_bf16(std::as_bytes(std::span(bf16)).data(), n));
      wide[bad] = bad % 2 == 0 ? std::numeric_limits<float>::infinity() : -std::nanf("1");
      half[bad] = bad % 2 == 0 ? 0x7c00 : 0xfc01;
      bf16[bad] = bad % 2 == 0 ? 0xff80 : 0x7fff;
      ASSERT_FALSE(cpu_.finite_f32(std::as_bytes(std::span(wide)).data(), n));
      ASSERT_FALSE(cpu_.finite_f16(std::as_bytes(std::span(half)).data(), n));
      ASSERT_FALSE(cpu_.finite_bf16(std::as_bytes(std::span(bf16)).data(), n));
    }
  }
}

TEST_P(CpuKernelsTest, SelectsTheSameAndStaysInItsBuffer) {
  std::vector<float> in = gaussian(kMaxLength + 8, 6);
  in[40] = 1.5f;  // Exactly at the threshold.
  for (const float threshold : {0.0f, 1.5f, 9.0f}) {
    at_all_lengths_and_offsets([&](std::size_t n, std::size_t offset) {
      for (const std::size_t capacity : {std::size_t{0}, n / 20, n / 4, n}) {
        std::vector<std::uint32_t> a(capacity + 1, 77);
        std::vector<std::uint32_t> b(capacity + 1, 77);
        const std::size_t found = cpu_.select(in.data() + offset, n, threshold, a.data(), capacity);
        ASSERT_EQ(found, scalar_.select(in.data() + offset, n, threshold, b.data(), capacity));
        ASSERT_EQ(a.back(), 77u) << n;
        const auto stored = static_cast<std::ptrdiff_t>(std::min(found, capacity));
        ASSERT_TRUE(std::equal(a.begin(), a.begin() + stored, b.begin())) << n;
      }
    });
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
