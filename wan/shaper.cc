#include "wan/shaper.h"

#include <algorithm>
#include <utility>

namespace isthmus::wan {
namespace {

constexpr std::uint64_t kBillion = 1'000'000'000;
constexpr std::uint64_t kMinPieceBytes = 4 * 1024;
constexpr std::uint64_t kMaxPieceBytes = 64 * 1024;
constexpr std::uint64_t kPiecesPerSecond = 256;  // Of a busy link, between the two sizes above.

// Without a rate nothing waits in the queue, so the line needs a limit of its own.
constexpr std::uint64_t kMaxUnlimitedLineBytes = 64 << 20;

constexpr std::uint32_t kJitterStream = 0x6a697474;

}  // namespace

Shaper::Shaper(ShaperOptions options)
    : options_(std::move(options)), random_(options_.seed, {kJitterStream, options_.stream, 0}) {}

void Shaper::push(Duration now, std::uint64_t bytes) {
  queue_.push_back({now, bytes});
  queued_bytes_ += bytes;
  if (queue_.size() == 1) plan();
}

std::uint64_t Shaper::room(Duration now) const {
  const std::uint64_t rate = rate_at(now);
  if (rate == kUnlimitedRate && line_bytes_ >= kMaxUnlimitedLineBytes) return 0;
  const std::uint64_t piece = std::clamp(rate / kPiecesPerSecond, kMinPieceBytes, kMaxPieceBytes);
  const std::uint64_t limit = std::max<std::uint64_t>(options_.queue_bytes, 1);
  const std::uint64_t free = limit - std::min(limit, queued_bytes_);
  // Crumbs that would fit are not worth a piece.
  return free >= std::min(piece, (limit + 1) / 2) ? std::min(piece, free) : 0;
}

void Shaper::depart() {
  const Piece piece = queue_.front();
  queue_.pop_front();
  last_departure_ = finish(piece);
  queued_bytes_ -= piece.bytes;
  passed_bytes_ += piece.bytes;
  line_bytes_ += piece.bytes;

  Duration jitter{0};
  if (options_.jitter > Duration{0})
    jitter = Duration(
        static_cast<Duration::rep>(random_.uniform() * static_cast<double>(options_.jitter.count() + 1)));
  last_release_ = std::max(last_release_, last_departure_.time + options_.delay + jitter);
  line_.push_back({last_release_, piece.bytes});
  plan();
}

std::optional<Duration> Shaper::next_release() const {
  if (line_.empty()) return std::nullopt;
  return line_.front().time;
}

void Shaper::release() {
  line_bytes_ -= line_.front().bytes;
  line_.pop_front();
}

void Shaper::block(Duration begin, Duration end) {
  blocked_.push_back({begin, end});
  plan();
}

void Shaper::clear() {
  queue_.clear();
  line_.clear();
  queued_bytes_ = line_bytes_ = 0;
  next_departure_.reset();
}

std::vector<RateStep>::const_iterator Shaper::next_step(Duration time) const {
  return std::upper_bound(options_.rates.begin(), options_.rates.end(), time,
                          [](Duration t, const RateStep& step) { return t < step.from; });
}

std::uint64_t Shaper::rate_at(Duration time) const {
  const auto later = next_step(time);
  return later == options_.rates.begin() ? kUnlimitedRate : std::prev(later)->bytes_per_sec;
}

// Walks from one change (of the rate, of an outage) to the next until the piece has passed. Work is counted
// in billionths of a byte: a rate of r bytes a second does r of them in a nanosecond, so nothing is rounded
// but the end of a piece, and what is left of its last nanosecond goes to the piece behind it.
Shaper::Finish Shaper::finish(const Piece& piece) const {
  Duration time = std::max(piece.time, last_departure_.time);
  std::uint64_t work = piece.bytes * kBillion;
  std::uint64_t unused = time == last_departure_.time ? last_departure_.unused : 0;
  const std::uint64_t saved = std::min(work, unused);
  work -= saved;
  unused -= saved;

  for (;;) {
    Duration change = Duration::max();
    Duration end_of_outage = time;
    for (const Interval& outage : blocked_) {
      if (outage.begin <= time && time < outage.end) end_of_outage = std::max(end_of_outage, outage.end);
      if (outage.begin > time) change = std::min(change, outage.begin);
    }
    if (end_of_outage > time) {
      time = end_of_outage;
      unused = 0;
      continue;
    }
    const auto later = next_step(time);
    if (later != options_.rates.end()) change = std::min(change, later->from);

    const std::uint64_t rate = rate_at(time);
    if (work == 0) return {time, unused};
    if (rate == kUnlimitedRate) return {time, 0};
    if (rate > 0) {
      const std::uint64_t needed = work / rate + (work % rate != 0);
      const auto available = static_cast<std::uint64_t>((change - time).count());
      if (needed <= available) return {time + Duration(needed), needed * rate - work};
      work -= available * rate;
    }
    time = change;
  }
}

void Shaper::plan() {
  next_departure_ = queue_.empty() ? std::nullopt : std::optional(finish(queue_.front()).time);
}

}  // namespace isthmus::wan
