#include "apps/emulate_flags.h"

#include <algorithm>
#include <utility>

#include "core/units.h"

namespace isthmus::apps {
namespace {

Status bad(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "'" + std::string(text) + "' " + why};
}

template <typename T>
Status store(Result<T> parsed, T& value) {
  if (parsed.ok()) value = *parsed;
  return std::move(parsed).status();
}

}  // namespace

Result<core::Address> parse_listen_address(std::string_view text) {
  constexpr std::string_view kAnyPort = ":0";
  if (!text.ends_with(kAnyPort)) return core::parse_address(text);
  auto address = core::parse_address(std::string(text.substr(0, text.size() - kAnyPort.size())) + ":1");
  if (address.ok()) address->port = 0;
  return address;
}

Result<wan::RelayMapping> parse_mapping(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    return bad(text, "is not LISTEN=TARGET, for example 127.0.0.1:7300=127.0.0.1:7200");
  wan::RelayMapping mapping;
  ISTHMUS_RETURN_IF_ERROR(store(parse_listen_address(text.substr(0, equals)), mapping.listen));
  ISTHMUS_RETURN_IF_ERROR(store(core::parse_address(text.substr(equals + 1)), mapping.target));
  return mapping;
}

Result<core::OutageConfig> parse_outage(std::string_view text) {
  const char* const example = "is not an outage, for example at=5s,for=2s or after=10MiB,for=2s,cut";
  core::OutageConfig outage;
  bool has_at = false, has_after = false, has_for = false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    if (key == "at" && !std::exchange(has_at, true)) {
      ISTHMUS_RETURN_IF_ERROR(store(core::parse_duration(value), outage.at));
    } else if (key == "after" && !std::exchange(has_after, true)) {
      ISTHMUS_RETURN_IF_ERROR(store(core::parse_bytes(value), outage.after_bytes));
      if (outage.after_bytes == 0) return bad(value, "must be at least 1 byte");
    } else if (key == "for" && !std::exchange(has_for, true)) {
      ISTHMUS_RETURN_IF_ERROR(store(core::parse_duration(value), outage.length));
    } else if (part == "cut") {
      outage.cut = true;
    } else {
      return bad(text, example);
    }
  }
  if (has_at == has_after || !has_for) return bad(text, example);
  return outage;
}

std::string describe(const core::EmulateConfig& link) {
  std::string text = "no limit to the rate";
  if (link.rate_bytes_per_sec > 0) text = core::exact_rate(link.rate_bytes_per_sec) + " each way";
  if (!link.trace.empty()) text += " (then as in " + link.trace + ")";
  text += ", " + core::exact_duration(link.rtt) + " round trip";
  if (link.jitter > core::Duration{0})
    text += " and up to " + core::exact_duration(link.jitter) + " of jitter each way";
  text += ", queue " + core::exact_bytes(link.queue_bytes);
  for (const core::OutageConfig& outage : link.outages) {
    text += outage.cut ? "; cut" : "; stalled";
    text += outage.after_bytes > 0 ? " after " + core::exact_bytes(outage.after_bytes)
                                   : " at " + core::exact_duration(outage.at);
    text += " for " + core::exact_duration(outage.length);
  }
  return text;
}

}  // namespace isthmus::apps
