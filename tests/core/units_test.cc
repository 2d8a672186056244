#include "core/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus::core {
namespace {

using namespace std::chrono_literals;

template <typename T>
std::string error_of(const Result<T>& result) {
  return result.ok() ? "no error" : result.status().message();
}

TEST(UnitsTest, ReadsDurations) {
  EXPECT_EQ(*parse_duration("200ms"), 200ms);
  EXPECT_EQ(*parse_duration("5 s"), 5s);
  EXPECT_EQ(*parse_duration("1.5min"), 90s);
  EXPECT_EQ(*parse_duration("2h"), 2h);
  EXPECT_EQ(*parse_duration("0.25us"), 250ns);
  EXPECT_EQ(*parse_duration("0s"), 0s);
}

TEST(UnitsTest, ReadsSizes) {
  EXPECT_EQ(*parse_bytes("64MiB"), 67'108'864u);
  EXPECT_EQ(*parse_bytes("1.5KiB"), 1536u);
  EXPECT_EQ(*parse_bytes("1MB"), 1'000'000u);
  EXPECT_EQ(*parse_bytes("18446744073709551615B"), std::numeric_limits<std::uint64_t>::max());
}

TEST(UnitsTest, ReadsRatesIntoBytesASecond) {
  EXPECT_EQ(*parse_rate("10Mbps"), 1'250'000u);
  EXPECT_EQ(*parse_rate("500Mbps"), 62'500'000u);
  EXPECT_EQ(*parse_rate("2.5Gbit/s"), 312'500'000u);
  EXPECT_EQ(*parse_rate("20MiB/s"), 20'971'520u);
}

TEST(UnitsTest, ReadsSharesAsTheNearestDouble) {
  EXPECT_EQ(*parse_share("1%"), 0.01);
  EXPECT_EQ(*parse_share("88 %"), 0.88);
  EXPECT_EQ(*parse_share("0.1%"), 0.001);
  EXPECT_EQ(*parse_share("0%"), 0.0);
}

TEST(UnitsTest, ReadsCountsInOneAndMany) {
  EXPECT_EQ(*parse_count("8 steps", "steps"), 8u);
  EXPECT_EQ(*parse_count("1 step", "steps"), 1u);
  EXPECT_EQ(*parse_count("3000", "steps", true), 3000u);
  EXPECT_EQ(*parse_count("64", ""), 64u);
}

TEST(UnitsTest, AMissingUnitIsAnErrorThatShowsOne) {
  EXPECT_EQ(error_of(parse_duration("200")), "'200' has no unit; write for example 200ms, 5s or 5min");
  EXPECT_EQ(error_of(parse_bytes("64")), "'64' has no unit; write for example 64MiB");
  EXPECT_EQ(error_of(parse_rate("10")), "'10' has no unit; write for example 500Mbps or 20MiB/s");
  EXPECT_EQ(error_of(parse_share("0.88")), "'0.88' has no unit; write a share in percent, for example 1%");
  EXPECT_EQ(error_of(parse_count("8", "steps")), "'8' has no unit; write '8 steps'");
}

TEST(UnitsTest, AnUnknownUnitIsAnErrorWithASuggestion) {
  EXPECT_EQ(error_of(parse_rate("10mbps")), "'10mbps' has the unknown unit 'mbps'; did you mean 'Mbps'?");
  EXPECT_EQ(error_of(parse_bytes("64MIB")), "'64MIB' has the unknown unit 'MIB'; did you mean 'MiB'?");
  EXPECT_EQ(error_of(parse_duration("5 days")),
            "'5 days' has the unknown unit 'days'; choose from h, min, s, ms, us, ns");
  EXPECT_EQ(error_of(parse_count("8 rounds", "steps")),
            "'8 rounds' has the unknown unit 'rounds'; write '8 steps'");
}

TEST(UnitsTest, HostileNumbersAreErrors) {
  for (const char* text :
       {"", " ", "-1s", "1e999s", "nan", "inf s", "s", ".5s", "1.s", "1.0000000001s", "0x10s",
        "99999999999999999999s", "9223372037s", "2562048h", "1 s s", "\x80\xff"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
  for (const char* text : {"-1B", "18446744073709551616B", "16777216TiB", "1e3B", "NaN", "+5B"}) {
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  }
  for (const char* text : {"-1Mbps", "7bps", "99999999999Gbps", "infMbps"}) {
    EXPECT_FALSE(parse_rate(text).ok()) << text;
  }
  for (const char* text : {"nan%", "inf%", "-1%", "1e999%", "%", "1.2.3%", "."}) {
    EXPECT_FALSE(parse_share(text).ok()) << text;
  }
  for (const char* text : {"1e999", "nan", "inf", "-inf", "", "0.1x", "1,5", "1e-9999"}) {
    EXPECT_FALSE(parse_float(text).ok()) << text;
    EXPECT_FALSE(parse_double(text).ok()) << text;
  }
  for (const char* text : {"-1", "1.5", "18446744073709551616", "0x10", "1e3", ""}) {
    EXPECT_FALSE(parse_integer(text).ok()) << text;
  }
}

TEST(UnitsTest, AnErrorRepeatsOnlyTheStartOfALongText) {
  EXPECT_LT(error_of(parse_bytes(std::string(100'000, '9'))).size(), 200u);
}

TEST(UnitsTest, WhatIsWrittenExactlyReadsBackTheSame) {
  EXPECT_EQ(exact_duration(90s), "90s");
  EXPECT_EQ(exact_duration(2h), "2h");
  EXPECT_EQ(exact_bytes(1536), "1536B");
  EXPECT_EQ(exact_bytes(64 << 20), "64MiB");
  EXPECT_EQ(exact_rate(1'250'000), "10Mbps");
  EXPECT_EQ(exact_share(0.01), "1%");
  EXPECT_EQ(exact_share(1.0), "100%");
  EXPECT_EQ(exact_share(0.0), "0%");
  EXPECT_EQ(exact_share(0.123456), "12.3456%");
  EXPECT_EQ(exact_share(0.00001), "0.001%");
  EXPECT_EQ(exact_number(0.1f), "0.1");
  EXPECT_EQ(exact_count(1, "steps"), "1 step");

  for (std::int64_t ns : {0ll, 1ll, 999ll, 1'000'001ll, 3'600'000'000'000ll, 9'223'372'036'854'775'807ll}) {
    EXPECT_EQ(*parse_duration(exact_duration(Duration(ns))), Duration(ns));
  }
  for (std::uint64_t n : {0ull, 1ull, 125ull, 1ull << 40, 18'446'744'073'709'551'615ull}) {
    EXPECT_EQ(*parse_bytes(exact_bytes(n)), n);
  }
  for (std::uint64_t n : {0ull, 1ull, 125ull, 1'250'000ull, 125'000'000'001ull}) {
    EXPECT_EQ(*parse_rate(exact_rate(n)), n);
  }
  for (double share : {0.01, 1.0 / 3.0, 0.1 + 0.2, 1e-6, 5e-324, 0.9999999999999999}) {
    EXPECT_EQ(*parse_share(exact_share(share)), share);
    EXPECT_EQ(*parse_double(exact_number(share)), share);
  }
  for (float number : {0.05f, 1.0f / 3.0f, 1e-8f, -1e6f})
    EXPECT_EQ(*parse_float(exact_number(number)), number);
}

TEST(UnitsTest, FormatsDurationsForEyes) {
  EXPECT_EQ(format_duration(0ns), "0 ns");
  EXPECT_EQ(format_duration(1500ns), "1.5 us");
  EXPECT_EQ(format_duration(350ms), "350 ms");
  EXPECT_EQ(format_duration(4200ms), "4.2 s");
  EXPECT_EQ(format_duration(59'990ms), "1 min 00 s");
  EXPECT_EQ(format_duration(65s), "1 min 05 s");
  EXPECT_EQ(format_duration(2h + 3min), "2 h 03 min");
  EXPECT_EQ(format_duration(-2s), "-2.0 s");
  EXPECT_EQ(format_duration(Duration::min()), "-2562047 h 47 min");
}

TEST(UnitsTest, FormatsSizesForEyes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(340ull << 30), "340 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(UnitsTest, FormatsRatesForEyes) {
  EXPECT_EQ(format_rate(0), "0 bit/s");
  EXPECT_EQ(format_rate(1'225'000), "9.8 Mbit/s");
  EXPECT_EQ(format_rate(124'999), "1.0 Mbit/s");
  EXPECT_EQ(format_rate(std::numeric_limits<double>::quiet_NaN()), "0 bit/s");
}

}  // namespace
}  // namespace isthmus::core
