#include "wan/link.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "proto/meta.h"

namespace isthmus::wan {
namespace {

constexpr std::chrono::seconds kTellRefusalsEvery{1};

std::uint64_t microseconds(core::TimePoint::duration time) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

std::uint64_t random_id() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

Link::Link(Peer peer, std::string name, std::uint32_t streams, Handler& handler,
           std::function<void(const std::string&)> log)
    : peer_(peer),
      name_(std::move(name)),
      id_(random_id()),
      handler_(handler),
      log_(std::move(log)),
      slots_(streams) {
  totals_.peer = peer;
}

void Link::say(const std::string& text) const {
  if (log_) log_("link to " + name_ + ": " + text);
}

std::size_t Link::count_alive() const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.stream != nullptr; }));
}

void Link::count_bytes(const Stream& stream) {
  totals_.sent_bytes += stream.sent_bytes();
  totals_.received_bytes += stream.received_bytes();
}

void Link::release(Slot& slot, const Status& why) {
  if (!slot.stream) return;
  const std::shared_ptr<Stream> stream = std::exchange(slot.stream, nullptr);
  stream->fail(why);
  count_bytes(*stream);
  totals_.last_error = why.message();
}

void Link::release_all(const Status& why) {
  for (Slot& slot : slots_) release(slot, why);
}

void Link::went_down(const Status& why) {
  if (!up_.exchange(false)) return;
  clock_sent_us_ = 0;
  say("down: " + why.message());
  handler_.on_link_down(peer_, why);
}

void Link::attach(const Admission& admission, std::shared_ptr<Stream> stream) {
  if (admission.incarnation > incarnation_) {
    const Status restarted(ErrorCode::kUnavailable, name_ + " has restarted");
    release_all(restarted);
    went_down(restarted);
  }
  incarnation_ = admission.incarnation;
  Slot& slot = slots_[admission.stream];
  const bool replaced = slot.stream != nullptr;
  release(slot, {ErrorCode::kUnavailable, "replaced by a new connection"});
  if (replaced && count_alive() == 0) went_down({ErrorCode::kUnavailable, "replaced by a new connection"});
  if (std::exchange(slot.connected_before, true)) ++totals_.reconnects;
  slot.stream = std::move(stream);

  const bool was_up = up();
  if (!was_up && count_alive() == slots_.size()) {
    note_clock(admission.clock, 0);
    up_.store(true, std::memory_order_release);
    say("up");
    handler_.on_link_up(peer_, incarnation_);
  } else if (was_up && replaced) {
    handler_.on_link_up(peer_, incarnation_);
  }
}

void Link::detach(const std::shared_ptr<Stream>& stream, const Status& why) {
  for (Slot& slot : slots_) {
    if (slot.stream != stream) continue;
    release(slot, why);
    if (count_alive() == 0) {
      went_down(why);
    } else if (up()) {
      say("lost a stream: " + why.message());
      handler_.on_link_up(peer_, incarnation_);
    }
    return;
  }
}

void Link::send(proto::Message message) {
  for (std::size_t i = 0; up() && i < slots_.size(); ++i) {
    const std::shared_ptr<Stream>& stream = slots_[(message.request_id + i) % slots_.size()].stream;
    if (!stream || stream->failed()) continue;
    stream->enqueue(std::move(message));
    return;
  }
  account(frame_bytes(message), false);
}

void Link::account(std::uint64_t bytes, bool written) {
  queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (!written) ++lost_messages_;
}

void Link::resume() {
  for (const Slot& slot : slots_)
    if (slot.stream) slot.stream->resume();
}

void Link::heartbeat_due() {
  for (const Slot& slot : slots_)
    if (slot.stream) slot.stream->heartbeat_due();
}

proto::Message Link::make_heartbeat(const Stream& stream, Step clock, core::TimePoint now) const {
  proto::LinkHeartbeat heartbeat;
  heartbeat.set_clock(clock);
  heartbeat.set_sent_us(microseconds(now.time_since_epoch()));
  if (stream.echo_us != 0) {
    heartbeat.set_echo_us(stream.echo_us);
    heartbeat.set_held_us(microseconds(now - stream.echo_at));
  }
  return proto::make_message(proto::Kind::kLinkHeartbeat, 0, heartbeat);
}

Status Link::note_heartbeat(Stream& stream, const proto::Message& message, core::TimePoint now) {
  const Result<proto::LinkHeartbeat> heartbeat = proto::parse_meta<proto::LinkHeartbeat>(message);
  if (!heartbeat.ok()) return heartbeat.status();
  stream.echo_us = heartbeat->sent_us();
  stream.echo_at = now;
  note_clock(heartbeat->clock(), heartbeat->sent_us());
  // What the peer says of our time may be anything; only what can be true is taken.
  const std::uint64_t now_us = microseconds(now.time_since_epoch());
  if (heartbeat->echo_us() != 0 && heartbeat->echo_us() <= now_us &&
      heartbeat->held_us() <= now_us - heartbeat->echo_us()) {
    const std::chrono::nanoseconds sample =
        std::chrono::microseconds(now_us - heartbeat->echo_us() - heartbeat->held_us());
    totals_.rtt = totals_.rtt.count() == 0 ? sample : (totals_.rtt * 7 + sample) / 8;
  }
  return {};
}

// Streams overtake each other: an older heartbeat must not set the clock back.
void Link::note_clock(Step clock, std::uint64_t sent_us) {
  if (sent_us < clock_sent_us_) return;
  clock_sent_us_ = sent_us;
  handler_.on_clock(peer_, clock);
}

void Link::note_error(const Status& why) { totals_.last_error = why.message(); }

void Link::note_refusal(const Status& why, core::TimePoint now) {
  ++totals_.refused;
  totals_.last_error = why.message();
  if (now - told_refusal_at_ < kTellRefusalsEvery) return;
  told_refusal_at_ = now;
  say(why.message());
  if (why.code() == ErrorCode::kRefused) handler_.on_refused(peer_, why);
}

LinkState Link::state() const {
  LinkState state = totals_;
  state.up = up();
  state.queued_bytes = queued_bytes();
  for (const Slot& slot : slots_) {
    if (!slot.stream) continue;
    state.sent_bytes += slot.stream->sent_bytes();
    state.received_bytes += slot.stream->received_bytes();
  }
  return state;
}

}  // namespace isthmus::wan
