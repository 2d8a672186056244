// One link: which of its streams live, what it tells the layer above, and what it has counted.
//
// Threads: the wan thread; up(), may_send() and queued_bytes() from any thread.
// Memory:  a pointer a stream; queued frames lie in the streams.
// Errors:  none; what went wrong is told to the Handler and kept as last_error.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "wan/endpoint.h"
#include "wan/link_handshake.h"
#include "wan/stream.h"

namespace isthmus::wan {

class Link {
 public:
  Link(Peer peer, std::string name, std::uint32_t streams, Handler& handler,
       std::function<void(const std::string&)> log);

  Peer peer() const { return peer_; }
  const std::string& name() const { return name_; }
  // All its streams share it, in this life of the process.
  std::uint64_t id() const { return id_; }
  std::uint64_t newest_incarnation() const { return incarnation_; }

  // ---- Any thread.
  bool up() const { return up_.load(std::memory_order_acquire); }
  std::uint64_t queued_bytes() const { return queued_bytes_.load(std::memory_order_relaxed); }
  void note_queued(std::uint64_t bytes) { queued_bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  // ---- The wan thread.
  // A stream has passed its handshake. A newer incarnation ends what is left of the older one's; a stream
  // takes the place of an older one of its number.
  void attach(const Admission& admission, std::shared_ptr<Stream> stream);
  // A stream has ended; nothing if another has taken its place.
  void detach(const std::shared_ptr<Stream>& stream, const Status& why);
  // Onto the slice's stream, or while that is down onto the next that lives. Loses it when none does.
  void send(proto::Message message);
  void resume();
  void heartbeat_due();

  // A queued frame has been written or lost.
  void account(std::uint64_t bytes, bool written);
  std::uint64_t lost_messages() const { return lost_messages_; }

  proto::Message make_heartbeat(const Stream& stream, Step clock, core::TimePoint now) const;
  // kProtocol for a heartbeat that does not parse.
  Status note_heartbeat(Stream& stream, const proto::Message& message, core::TimePoint now);

  // Could not be connected; or refused: counted, and told once a second at most. The Handler hears of
  // kRefused, by either side; bytes that are no frames (kProtocol, kCorruption) only end their stream.
  void note_error(const Status& why);
  void note_refusal(const Status& why, core::TimePoint now);
  // Of a stream that was never attached: its bytes count nevertheless.
  void count_bytes(const Stream& stream);
  LinkState state() const;

 private:
  struct Slot {
    std::shared_ptr<Stream> stream;
    bool connected_before = false;
  };

  void release(Slot& slot, const Status& why);
  void release_all(const Status& why);
  void went_down(const Status& why);
  std::size_t count_alive() const;
  void note_clock(Step clock, std::uint64_t sent_us);
  void say(const std::string& text) const;

  const Peer peer_;
  const std::string name_;
  const std::uint64_t id_;
  Handler& handler_;
  std::function<void(const std::string&)> log_;

  std::atomic<bool> up_{false};
  std::atomic<std::uint64_t> queued_bytes_{0};

  std::vector<Slot> slots_;
  std::uint64_t incarnation_ = 0;
  std::uint64_t clock_sent_us_ = 0;  // Of the heartbeat that brought the newest clock.
  std::uint64_t lost_messages_ = 0;
  core::TimePoint told_refusal_at_{};
  LinkState totals_;  // Of streams that have ended.
};

}  // namespace isthmus::wan
