// A TCP relay that behaves like a slow link: every connection through it shares one rate, delay, jitter,
// queue and set of outages each way. It needs no privileges, and the programs at its ends need not know.
//
// What it does not emulate: packets (nothing is lost or reordered; TCP would hide both) and the handshake
// of TCP (connecting is as fast as without it; what is sent afterwards is not).
//
// Threads: start() makes a thread of its own; every method may be called from any thread.
// Memory:  a queue of queue_bytes and a line of rate * delay each way, and kMaxUnwrittenBytes for each
//          connection whose receiver is slow. Beyond that it stops reading.
// Errors:  start() names the address that cannot be bound or the setting that is wrong. Afterwards, a target
//          that cannot be reached closes the connection that wanted it, and is logged.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"

namespace isthmus::wan {

inline constexpr std::uint64_t kMaxUnwrittenBytes = 256 * 1024;

struct RelayMapping {
  core::Address listen;  // Port 0: any free one; see Relay::ports().
  core::Address target;  // Resolved for each connection.
};

struct RelayOptions {
  std::vector<RelayMapping> mappings;
  core::EmulateConfig link;
  std::uint64_t seed = 1;  // Of the jitter.
  // Called on the relay's thread; must not block. May be empty.
  std::function<void(const std::string&)> log;
};

// Of one direction. Bytes that a cut threw away are in none of these.
struct RelayWayStats {
  std::uint64_t delivered_bytes = 0;  // Given to the receiver's socket, since the start.
  std::uint64_t queued_bytes = 0;     // Waiting for the rate.
  std::uint64_t line_bytes = 0;       // On their way.
  std::uint64_t unwritten_bytes = 0;  // Arrived, but the receiver does not read them.
};

struct RelayStats {
  RelayWayStats there;  // From who dialled to the target.
  RelayWayStats back;
  std::uint64_t open = 0;      // Connections now.
  std::uint64_t accepted = 0;  // Since the start ...
  std::uint64_t failed = 0;    // ... and of these, closed because their target could not be reached.
  std::uint64_t cut = 0;       // ... and closed, or not even begun, because of a cut.
};

class Relay {
 public:
  // Binds everything, then starts the thread and the link's time.
  static Result<std::unique_ptr<Relay>> start(RelayOptions options);
  virtual ~Relay() = default;  // stop()

  // Where it listens, in the order of the mappings.
  virtual const std::vector<std::uint16_t>& ports() const = 0;

  virtual RelayStats stats() const = 0;

  // Closes everything at once and ends the thread.
  virtual void stop() = 0;
};

}  // namespace isthmus::wan
