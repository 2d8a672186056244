#include "core/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "core/suggest.h"

namespace isthmus::core {
namespace {

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kMi = kKi * 1024;
constexpr std::uint64_t kGi = kMi * 1024;
constexpr std::uint64_t kTi = kGi * 1024;

struct Unit {
  std::string_view name;
  std::uint64_t scale;
};

// Coarsest first, so that exact() finds the shortest way to write a value.
constexpr Unit kTimes[] = {{"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000},
                           {"ms", 1'000'000},        {"us", 1'000},           {"ns", 1}};
constexpr Unit kSizes[] = {
    {"TiB", kTi},          {"GiB", kGi},      {"MiB", kMi},  {"KiB", kKi}, {"TB", 1'000'000'000'000},
    {"GB", 1'000'000'000}, {"MB", 1'000'000}, {"kB", 1'000}, {"B", 1}};
constexpr Unit kExactRates[] = {{"Gbps", 125'000'000}, {"Mbps", 125'000}, {"kbps", 125}, {"B/s", 1}};
// In bits a second.
constexpr Unit kRates[] = {
    {"bps", 1},         {"kbps", 1'000},    {"Mbps", 1'000'000},   {"Gbps", 1'000'000'000},
    {"bit/s", 1},       {"kbit/s", 1'000},  {"Mbit/s", 1'000'000}, {"Gbit/s", 1'000'000'000},
    {"B/s", 8},         {"kB/s", 8'000},    {"MB/s", 8'000'000},   {"GB/s", 8'000'000'000},
    {"KiB/s", 8 * kKi}, {"MiB/s", 8 * kMi}, {"GiB/s", 8 * kGi}};

// Bytes of the text that an error repeats.
constexpr std::size_t kMaxQuoted = 64;

std::string quoted(std::string_view text) {
  const bool cut = text.size() > kMaxQuoted;
  return "'" + std::string(text.substr(0, kMaxQuoted)) + (cut ? "...'" : "'");
}

Status bad(std::string_view text, const std::string& what) {
  return Status(ErrorCode::kInvalidArgument, quoted(text) + what);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "1.25 MiB": whole 1, fraction 25, fraction_scale 100, unit "MiB".
struct Quantity {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;
  std::uint64_t fraction_scale = 1;
  std::string_view unit;
};

Result<Quantity> parse_quantity(std::string_view text, const std::string& example) {
  const std::string_view all = trim(text);
  if (!all.empty() && all.front() == '-') return bad(text, " must not be negative");
  const char* const end = all.data() + all.size();
  Quantity q;
  auto [at, error] = std::from_chars(all.data(), end, q.whole);
  if (error == std::errc::result_out_of_range) return bad(text, " is too large");
  if (error != std::errc()) return bad(text, " does not start with a number; write for example " + example);
  if (at != end && *at == '.') {
    const char* const first = at + 1;
    for (at = first; at != end && is_digit(*at); ++at) {
      if (at - first == 9) return bad(text, " has more than 9 decimals");
      q.fraction = q.fraction * 10 + static_cast<std::uint64_t>(*at - '0');
      q.fraction_scale *= 10;
    }
    if (at == first) return bad(text, " ends in a point; write for example " + example);
  }
  q.unit = trim(std::string_view(at, static_cast<std::size_t>(end - at)));
  return q;
}

// Rounded to the nearest; nothing when it is above `limit`.
std::optional<std::uint64_t> scaled(const Quantity& q, std::uint64_t scale, std::uint64_t limit) {
  if (q.whole > limit / scale) return std::nullopt;
  // fraction * scale could overflow; the remainder of the scale cannot: both factors are below 10^9.
  const std::uint64_t rest = q.fraction * (scale % q.fraction_scale);
  const std::uint64_t part =
      q.fraction * (scale / q.fraction_scale) + (rest + q.fraction_scale / 2) / q.fraction_scale;
  const std::uint64_t whole = q.whole * scale;
  if (part > limit - whole) return std::nullopt;
  return whole + part;
}

Result<std::uint64_t> parse_scaled(std::string_view text, std::span<const Unit> units, std::uint64_t limit,
                                   const std::string& example) {
  Result<Quantity> q = parse_quantity(text, example);
  if (!q) return q.status();
  if (q->unit.empty()) return bad(text, " has no unit; write for example " + example);
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == q->unit; });
  if (unit == units.end()) {
    std::vector<std::string_view> names;
    for (const Unit& u : units) names.push_back(u.name);
    return bad(text, " has the unknown unit " + quoted(q->unit) + suggestion(q->unit, names));
  }
  const std::optional<std::uint64_t> value = scaled(*q, unit->scale, limit);
  if (!value) return bad(text, " is too large");
  return *value;
}

std::string exact(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.scale == 0)
      return std::to_string(value / unit.scale) + std::string(unit.name);
  }
  return std::to_string(value) + std::string(units.back().name);
}

template <typename T>
Result<T> parse_real(std::string_view text) {
  const std::string_view all = trim(text);
  T value{};
  const auto [at, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error == std::errc::result_out_of_range) return bad(text, " cannot be held: too large or too small");
  if (error != std::errc() || at != all.data() + all.size()) {
    return bad(text, " is not a number; write for example 0.05 or 1e-3");
  }
  if (!std::isfinite(value)) return bad(text, " is not finite");
  return value;
}

template <typename T>
std::string shortest(T value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

std::string fixed(double value, int decimals) {
  char text[400];  // The largest double has 309 digits.
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, decimals).ptr;
  return std::string(text, end);
}

// 1.5 and "MiB" for 1572864. Moves to the next unit before it would print "1024 KiB" or "1000 kbit/s".
std::string with_prefix(double value, double base, std::span<const std::string_view> units) {
  std::size_t i = 0;
  while (i + 1 < units.size() && value >= base - 0.5) {
    value /= base;
    ++i;
  }
  return fixed(value, i == 0 || value >= 99.95 ? 0 : 1) + " " + std::string(units[i]);
}

std::string two_digits(std::int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); }

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  constexpr std::uint64_t kLimit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  Result<std::uint64_t> value = parse_scaled(text, kTimes, kLimit, "200ms, 5s or 5min");
  if (!value) return value.status();
  return Duration(static_cast<std::int64_t>(*value));
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  return parse_scaled(text, kSizes, std::numeric_limits<std::uint64_t>::max(), "64MiB");
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  Result<std::uint64_t> bits =
      parse_scaled(text, kRates, std::numeric_limits<std::uint64_t>::max(), "500Mbps or 20MiB/s");
  if (!bits) return bits.status();
  if (*bits > 0 && *bits < 8) return bad(text, " is less than a byte a second");
  return *bits / 8;
}

Result<double> parse_share(std::string_view text) {
  const std::string_view all = trim(text);
  if (all.empty() || all.back() != '%')
    return bad(text, " has no unit; write a share in percent, for example 1%");
  const std::string_view digits = trim(all.substr(0, all.size() - 1));
  if (digits.empty() || digits.find_first_not_of("0123456789.") != std::string_view::npos) {
    return bad(text, " is not a share; write for example 1% or 0.5%");
  }
  // The decimal point is moved in the text, so that the value is the double nearest to what was written.
  Result<double> value = parse_real<double>(std::string(digits) + "e-2");
  if (!value) return bad(text, " is not a share; write for example 1% or 0.5%");
  return value;
}

Result<float> parse_float(std::string_view text) { return parse_real<float>(text); }
Result<double> parse_double(std::string_view text) { return parse_real<double>(text); }

Result<std::uint64_t> parse_integer(std::string_view text) {
  Result<Quantity> q = parse_quantity(text, "8");
  if (!q) return q.status();
  if (q->fraction_scale != 1) return bad(text, " is not a whole number");
  if (!q->unit.empty()) return bad(text, " is not a whole number; it takes no unit");
  return q->whole;
}

Result<std::uint64_t> parse_count(std::string_view text, std::string_view unit, bool unit_optional) {
  if (unit.empty()) return parse_integer(text);
  const std::string example = "'8 " + std::string(unit) + "'";
  Result<Quantity> q = parse_quantity(text, example);
  if (!q) return q.status();
  if (q->fraction_scale != 1) return bad(text, " is not a whole number of " + std::string(unit));
  const std::string_view singular = unit.substr(0, unit.size() - 1);
  if (q->unit.empty() && !unit_optional) {
    return bad(text, " has no unit; write '" + exact_count(q->whole, unit) + "'");
  }
  if (!q->unit.empty() && q->unit != unit && q->unit != singular) {
    return bad(text,
               " has the unknown unit " + quoted(q->unit) + "; write '" + exact_count(q->whole, unit) + "'");
  }
  return q->whole;
}

std::string exact_duration(Duration value) {
  if (value == Duration::zero()) return "0s";
  return exact(static_cast<std::uint64_t>(value.count()), kTimes);
}

std::string exact_bytes(std::uint64_t bytes) { return exact(bytes, kSizes); }
std::string exact_rate(std::uint64_t bytes_per_sec) { return exact(bytes_per_sec, kExactRates); }
std::string exact_number(float value) { return shortest(value); }
std::string exact_number(double value) { return shortest(value); }

std::string exact_share(double value) {
  // "d.ddde-NN": the point is moved in the text, as in parse_share.
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
  const std::string_view all(text, static_cast<std::size_t>(end - text));
  const std::size_t e = all.find('e');
  if (e == std::string_view::npos) return std::string(all) + "%";  // Not finite.
  std::string digits;
  for (char c : all.substr(0, e)) {
    if (is_digit(c)) digits += c;
  }
  const std::string_view exponent_text = all.substr(all[e + 1] == '+' ? e + 2 : e + 1);
  int exponent = 0;
  std::from_chars(exponent_text.data(), end, exponent);
  const int point = exponent + 3;  // Digits before the decimal point, after two more.
  if (value == 0.0) return "0%";
  if (point <= 0) return "0." + std::string(static_cast<std::size_t>(-point), '0') + digits + "%";
  const auto before = static_cast<std::size_t>(point);
  if (digits.size() <= before) return digits + std::string(before - digits.size(), '0') + "%";
  return digits.substr(0, before) + "." + digits.substr(before) + "%";
}

std::string exact_count(std::uint64_t count, std::string_view unit) {
  if (unit.empty()) return std::to_string(count);
  return std::to_string(count) + " " + std::string(count == 1 ? unit.substr(0, unit.size() - 1) : unit);
}

std::string format_duration(Duration value) {
  using namespace std::chrono;
  if (value < Duration::zero())
    return "-" + format_duration(value == Duration::min() ? Duration::max() : -value);
  const double ns = static_cast<double>(value.count());
  if (ns < 999.5) return fixed(ns, 0) + " ns";
  if (ns < 999.5e3) return fixed(ns / 1e3, ns < 9.95e3 ? 1 : 0) + " us";
  if (ns < 999.5e6) return fixed(ns / 1e6, ns < 9.95e6 ? 1 : 0) + " ms";
  if (ns < 59.95e9) return fixed(ns / 1e9, 1) + " s";
  const long long total = std::llround(ns / 1e9);
  if (total < 3600) return std::to_string(total / 60) + " min " + two_digits(total % 60) + " s";
  return std::to_string(total / 3600) + " h " + two_digits(total / 60 % 60) + " min";
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return with_prefix(static_cast<double>(bytes), 1024, kUnits);
}

std::string format_rate(double bytes_per_sec) {
  constexpr std::string_view kUnits[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  return with_prefix(std::isfinite(bytes_per_sec) && bytes_per_sec > 0 ? bytes_per_sec * 8 : 0.0, 1000,
                     kUnits);
}

}  // namespace isthmus::core
