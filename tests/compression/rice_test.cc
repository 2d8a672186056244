#include "compression/rice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/compression/support.h"

namespace isthmus::compression {
namespace {

using Indices = std::vector<std::uint32_t>;

Bytes coded(const Indices& indices, unsigned parameter) {
  Bytes out(8 * kMaxRiceBytes + 8);
  out.resize(rice_encode(indices, parameter, out.data()));
  return out;
}

std::size_t bits_with(const Indices& indices, unsigned parameter) {
  std::size_t bits = 0;
  for (std::size_t i = 1; i < indices.size(); ++i) {
    bits += ((indices[i] - indices[i - 1] - 1) >> parameter) + 1 + parameter;
  }
  return bits;
}

Indices geometric(double share, std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Indices indices{7};
  while (indices.size() < count) {
    const double u = (random() + 0.5) / 4294967296.0;
    indices.push_back(indices.back() + 1 + static_cast<std::uint32_t>(std::log(u) / std::log1p(-share)));
  }
  return indices;
}

void expect_round_trip(const Indices& indices, unsigned parameter) {
  const Bytes record = coded(indices, parameter);
  Indices out(indices.size(), 0);
  out[0] = indices[0];
  ASSERT_TRUE(rice_decode(record, parameter, std::uint64_t{indices.back()} + 1, out)) << parameter;
  EXPECT_EQ(out, indices);
  // Not one element fewer, not one byte more or fewer.
  if (indices.size() > 1) {
    EXPECT_FALSE(rice_decode(record, parameter, indices.back(), out));
  }
  Bytes longer = record;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(rice_decode(longer, parameter, std::uint64_t{indices.back()} + 1, out));
  if (!record.empty()) {
    const auto shorter = std::span(record).first(record.size() - 1);
    EXPECT_FALSE(rice_decode(shorter, parameter, std::uint64_t{indices.back()} + 1, out));
  }
}

TEST(RiceTest, GoldenBytes) {
  // Gaps 0, 1, 5 and, with a parameter of 0, a bitmap: 1 01 000001.
  EXPECT_EQ(coded({3, 4, 6, 12}, 0), bytes({0b00000101, 0b1}));
  // 5 with a parameter of 2: a zero, a one, and 01.
  EXPECT_EQ(coded({0, 6}, 2), bytes({0b0110}));
}

TEST(RiceTest, RoundTripsAtEveryDensityAndParameter) {
  for (const double share : {0.9, 0.1, 0.01, 0.001, 1e-5}) {
    for (const std::size_t count : {1u, 2u, 9u, 256u}) {
      const Indices indices = geometric(share, count, 3);
      const unsigned best = best_rice_parameter(indices);
      for (unsigned parameter = best < 3 ? 0 : best - 3; parameter < best + 3; ++parameter) {
        if (bits_with(indices, parameter) <= kMaxRiceBytes * 8) expect_round_trip(indices, parameter);
      }
    }
  }
}

TEST(RiceTest, RoundTripsTheLargestGaps) {
  expect_round_trip({0, 0xffffffffu}, best_rice_parameter(Indices{0, 0xffffffffu}));
  Indices clustered{0};
  for (std::uint32_t i = 1; i < 255; ++i) clustered.push_back(i);
  clustered.push_back(0xfffffff0u);
  const unsigned parameter = best_rice_parameter(clustered);
  EXPECT_LE(coded(clustered, parameter).size(), kMaxRiceBytes);
  expect_round_trip(clustered, parameter);
}

TEST(RiceTest, TheBestParameterIsTheBest) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Indices indices = geometric(seed % 2 == 0 ? 0.03 : 0.4, 200, seed);
    for (const std::uint32_t index : geometric(0.0003, 20, seed)) indices.push_back(indices.back() + index);
    std::size_t least = bits_with(indices, 0);
    for (unsigned b = 1; b <= kMaxRiceParameter; ++b) least = std::min(least, bits_with(indices, b));
    EXPECT_EQ(bits_with(indices, best_rice_parameter(indices)), least) << seed;
  }
}

// Golomb and Rice codes of independent positions: 4.756, 8.107 and 11.497 bits an index.
TEST(RiceTest, CostsWhatTheoryHas) {
  for (const auto& [share, expected] : {std::pair{0.1, 4.756}, {0.01, 8.107}, {0.001, 11.497}}) {
    double bits = 0.0;
    for (std::uint32_t seed = 0; seed < 400; ++seed) {
      const Indices indices = geometric(share, 256, seed);
      bits += static_cast<double>(bits_with(indices, best_rice_parameter(indices)));
    }
    EXPECT_NEAR(bits / (400 * 255), expected, 0.01 * expected);
  }
}

TEST(RiceTest, AnyBytesAreReadOrRefused) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    Bytes hostile(random() % 40);
    for (std::byte& value : hostile) value = static_cast<std::byte>(random() & random() & random());
    Indices out(1 + random() % 64, 0);
    const unsigned parameter = random() % 40;
    if (!rice_decode(hostile, parameter, 100000, out)) continue;
    EXPECT_TRUE(std::is_sorted(out.begin(), out.end(), std::less_equal<>()));
    EXPECT_LT(out.back(), 100000u);
    EXPECT_EQ(coded(out, parameter), hostile);  // One text for one meaning.
  }
  Indices two(2, 0);
  EXPECT_FALSE(rice_decode(Bytes(kMaxRiceBytes + 1, std::byte{0xff}), 0, 1u << 31, two));
  EXPECT_FALSE(rice_decode(Bytes(kMaxRiceBytes), 31, ~0ull, two));  // Zeros without end.
}

}  // namespace
}  // namespace isthmus::compression
