// Quantities as people write them ("200ms", "64MiB", "500Mbps", "8 steps", "1%") and back.
//
// parse_x reads, exact_x writes what parse_x reads back to the same value, format_x rounds for eyes.
// A unit is always required, so that no bare number has to be guessed.
//
// Threads: pure functions.
// Memory:  results own their strings.
// Errors:  kInvalidArgument; the message says what is wrong with the text and what to write instead.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "isthmus/status.h"

namespace isthmus::core {

using Duration = std::chrono::nanoseconds;

Result<Duration> parse_duration(std::string_view text);    // ns us ms s min h
Result<std::uint64_t> parse_bytes(std::string_view text);  // B KiB MiB GiB TiB kB MB GB TB
Result<std::uint64_t> parse_rate(std::string_view text);  // Bytes a second, from bps kbps Mbps Gbps or MiB/s.
Result<double> parse_share(std::string_view text);        // "1%" is 0.01.
Result<float> parse_float(std::string_view text);         // Finite.
Result<double> parse_double(std::string_view text);       // Finite.
Result<std::uint64_t> parse_integer(std::string_view text);  // Not negative.

// "8 steps" and "1 step" for the unit "steps". The unit may be left out only if `unit_optional`.
Result<std::uint64_t> parse_count(std::string_view text, std::string_view unit, bool unit_optional = false);

std::string exact_duration(Duration value);  // REQUIRES: value >= 0.
std::string exact_bytes(std::uint64_t bytes);
std::string exact_rate(std::uint64_t bytes_per_sec);
std::string exact_share(double value);
std::string exact_number(float value);
std::string exact_number(double value);
std::string exact_count(std::uint64_t count, std::string_view unit);  // "1 step"; "8" when there is no unit.

std::string format_duration(Duration value);    // "350 ms", "4.2 s", "1 min 05 s", "2 h 03 min"
std::string format_bytes(std::uint64_t bytes);  // "512 B", "1.5 MiB", "340 GiB"
std::string format_rate(double bytes_per_sec);  // "9.8 Mbit/s": lines are sold in bits.

}  // namespace isthmus::core
