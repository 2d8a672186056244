#include "wan/emulated_link.h"

#include <algorithm>
#include <string>
#include <utility>

namespace isthmus::wan {
namespace {

// Sums of times stay far from what nanoseconds can count.
constexpr Duration kLongest = std::chrono::hours(24 * 365);

Status check_duration(Duration value, const char* name) {
  if (value < Duration{0} || value > kLongest)
    return {ErrorCode::kInvalidArgument, std::string(name) + " must lie between 0 and one year"};
  return {};
}

Status check(const core::EmulateConfig& config) {
  ISTHMUS_RETURN_IF_ERROR(check_duration(config.rtt, "rtt"));
  ISTHMUS_RETURN_IF_ERROR(check_duration(config.jitter, "jitter"));
  if (config.queue_bytes == 0) return {ErrorCode::kInvalidArgument, "queue must be at least 1 byte"};
  for (const core::OutageConfig& outage : config.outages) {
    ISTHMUS_RETURN_IF_ERROR(check_duration(outage.at, "the begin of an outage"));
    ISTHMUS_RETURN_IF_ERROR(check_duration(outage.length, "the length of an outage"));
    if (outage.length == Duration{0}) return {ErrorCode::kInvalidArgument, "an outage must be longer than 0"};
    if (outage.after_bytes != 0 && outage.at != Duration{0})
      return {ErrorCode::kInvalidArgument, "an outage begins at a time or after bytes, not both"};
  }
  return {};
}

Status check(const std::vector<RateStep>& trace) {
  for (std::size_t i = 0; i < trace.size(); ++i) {
    ISTHMUS_RETURN_IF_ERROR(check_duration(trace[i].from, "a time of the trace"));
    if (i > 0 && trace[i].from <= trace[i - 1].from)
      return {ErrorCode::kInvalidArgument, "the times of the trace must increase"};
  }
  if (!trace.empty() && trace.back().bytes_per_sec == 0)
    return {ErrorCode::kInvalidArgument, "the last rate of the trace is held, so it must be above 0"};
  return {};
}

std::vector<RateStep> rates(std::uint64_t constant, const std::vector<RateStep>& trace) {
  std::vector<RateStep> all;
  if (trace.empty() || trace.front().from > Duration{0})
    all.push_back({Duration{0}, constant == 0 ? kUnlimitedRate : constant});
  all.insert(all.end(), trace.begin(), trace.end());
  return all;
}

}  // namespace

Result<EmulatedLink> EmulatedLink::create(const core::EmulateConfig& config,
                                          const std::vector<RateStep>& trace, std::uint64_t seed) {
  ISTHMUS_RETURN_IF_ERROR(check(config));
  ISTHMUS_RETURN_IF_ERROR(check(trace));
  ShaperOptions there{.rates = rates(config.rate_bytes_per_sec, trace),
                      .delay = config.rtt / 2,
                      .jitter = config.jitter,
                      .queue_bytes = config.queue_bytes,
                      .seed = seed,
                      .stream = 0};
  ShaperOptions back = there;
  back.stream = 1;

  std::vector<core::OutageConfig> by_bytes;
  for (const core::OutageConfig& outage : config.outages)
    if (outage.after_bytes > 0) by_bytes.push_back(outage);
  EmulatedLink link(std::move(by_bytes), {Shaper(std::move(there)), Shaper(std::move(back))});
  for (const core::OutageConfig& outage : config.outages)
    if (outage.after_bytes == 0) link.begin_outage(outage, outage.at);
  return link;
}

void EmulatedLink::advance(Duration now) {
  for (;;) {
    const auto there = shaper(Way::kThere).next_departure();
    const auto back = shaper(Way::kBack).next_departure();
    const bool back_first = back && (!there || *back < *there);
    Shaper& first = shaper(back_first ? Way::kBack : Way::kThere);
    const auto at = first.next_departure();
    if (!at || *at > now) return;
    first.depart();

    const auto due = std::stable_partition(
        by_bytes_.begin(), by_bytes_.end(),
        [&](const core::OutageConfig& outage) { return outage.after_bytes > first.passed_bytes(); });
    for (auto outage = due; outage != by_bytes_.end(); ++outage) begin_outage(*outage, *at);
    by_bytes_.erase(due, by_bytes_.end());
  }
}

bool EmulatedLink::take_cut(Duration now) {
  bool cut = false;
  for (Outage& outage : outages_) {
    if (!outage.cut || outage.taken || outage.begin > now) continue;
    outage.taken = cut = true;
  }
  return cut;
}

void EmulatedLink::clear() {
  for (const Way way : kBothWays) shaper(way).clear();
}

bool EmulatedLink::cut_at(Duration now) const {
  return std::any_of(outages_.begin(), outages_.end(), [&](const Outage& outage) {
    return outage.cut && outage.begin <= now && now < outage.end;
  });
}

std::optional<Duration> EmulatedLink::next_event() const {
  std::optional<Duration> next;
  const auto consider = [&](std::optional<Duration> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  for (const Way way : kBothWays) {
    consider(shaper(way).next_departure());
    consider(shaper(way).next_release());
  }
  for (const Outage& outage : outages_)
    if (outage.cut && !outage.taken) consider(outage.begin);
  return next;
}

void EmulatedLink::begin_outage(const core::OutageConfig& outage, Duration at) {
  outages_.push_back({at, at + outage.length, outage.cut, false});
  for (const Way way : kBothWays) shaper(way).block(at, at + outage.length);
}

}  // namespace isthmus::wan
