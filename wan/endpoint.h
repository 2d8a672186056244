// A server's side of all its links: one thread that dials, listens, keeps links alive and moves messages
// to and from the servers of other regions, over TLS 1.3 with both sides' certificates checked.
//
// A link is K streams to one server of one region. It comes up when all of them are, and stays up while one
// is. It promises order and integrity on a stream while the stream lives, and says when one died: what was on
// its way may be lost or may have arrived, so the layer above sends again what was not acknowledged, and
// dedupes by sequence number. A slice stays on its stream; around the loss of that stream its messages may
// overtake each other.
//
// Threads: start() makes the wan thread; send(), set_*() and links() may be called from any thread;
//          `Handler` is called on the wan thread and must not block.
// Memory:  queued bytes to one peer are what the layer above has unacknowledged; a link that is down queues
//          nothing. Reassembly holds one message a stream, at most `max_message_bytes`.
// Errors:  network trouble is reported to the Handler and mended by redialling; a peer that refuses us, or
//          whom we refuse, is reported with the reason.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/job_config.h"
#include "core/layout.h"
#include "isthmus/status.h"
#include "proto/frame.h"

namespace isthmus::wan {

// A server of another region, by its indices in the job's config.
struct Peer {
  std::uint32_t region = 0;
  std::uint32_t server = 0;
  auto operator<=>(const Peer&) const = default;
};

inline constexpr Step kFinishedClock = ~Step{0};  // "We have ended": holds nobody back.

// What the server does with what arrives. Called on the wan thread.
class Handler {
 public:
  virtual ~Handler() = default;
  // Returns false when there is no room now: the endpoint keeps the message, stops reading that stream,
  // and offers it again after Endpoint::resume().
  virtual bool on_message(Peer from, proto::Message& message) = 0;
  // A message may come first: the peer may see its side of the streams complete a moment earlier.
  // Up, or still up after a stream was lost while others live: send again what is not acknowledged.
  virtual void on_link_up(Peer peer, std::uint64_t incarnation) = 0;
  virtual void on_link_down(Peer peer, const Status& why) = 0;
  virtual void on_clock(Peer peer, Step clock) = 0;
  // The peer says that we do not belong (wrong job, layout, version, certificate). Dialling goes on, slowly.
  virtual void on_refused(Peer peer, const Status& why) = 0;
};

struct LinkState {
  Peer peer;
  bool up = false;
  std::uint64_t sent_bytes = 0;  // Under TLS, over all its streams so far.
  std::uint64_t received_bytes = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t refused = 0;
  std::uint64_t queued_bytes = 0;   // Given to send(), not yet written.
  std::chrono::nanoseconds rtt{0};  // Smoothed, from heartbeats; 0: unknown.
  std::string last_error;
};

// How patient an endpoint is. The defaults are for real jobs; tests take shorter ones.
struct EndpointTiming {
  core::Duration handshake = std::chrono::seconds(10);         // From dialling to the answer to the hello.
  core::Duration backoff_min = std::chrono::milliseconds(50);  // Between attempts: doubles ...
  core::Duration backoff_max = std::chrono::seconds(2);        // ... up to this, with jitter,
  core::Duration after_refusal = std::chrono::seconds(5);      // and is this once a peer has refused.
};

struct EndpointOptions {
  core::JobConfig config;
  std::uint32_t region = 0;  // Which one we are ...
  std::uint32_t server = 0;  // ... and which of its servers.
  std::uint64_t incarnation = 0;
  core::Layout layout;  // Agreed on in the handshake.
  // Dial there instead of the peer's configured `wan` address (an emulated link's relay).
  std::vector<std::pair<Peer, core::Address>> via;
  std::function<void(const std::string&)> log;  // Called on the wan thread.
  EndpointTiming timing{};
};

class Endpoint {
 public:
  // Binds, reads keys, starts the thread. Of two regions, the later in the config dials the earlier; so the
  // last region does not listen. Port 0 binds any free one.
  static Result<std::unique_ptr<Endpoint>> start(EndpointOptions options, Handler& handler);
  virtual ~Endpoint() = default;  // Closes all links and ends the thread.

  // Queues a message. kUnavailable when the link is down: on_link_up() will come. Messages to one peer about
  // one slice (request_id) keep their order.
  virtual Status send(Peer to, proto::Message message) = 0;

  // There is room again: offer what on_message() declined.
  virtual void resume() = 0;

  // The step of this server's slowest living worker; rides on every heartbeat.
  virtual void set_clock(Step clock) = 0;

  virtual std::vector<LinkState> links() const = 0;

  // Blocks until every queued message is written, or the time is up (kTimeout). kUnavailable when some were
  // lost with their stream meanwhile. Not from the Handler.
  virtual Status flush(std::chrono::nanoseconds timeout) = 0;

  // Where it listens; 0 when it does not.
  virtual std::uint16_t port() const = 0;

  // Connections that ended before they had proven to be one of our peers, and were not merely cut.
  virtual std::uint64_t refused_strangers() const = 0;
};

}  // namespace isthmus::wan
