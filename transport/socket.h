// One message to one peer inside a region, over ZeroMQ.
//
// A router socket answers many dealers; a dealer speaks to one router. Frames travel as multipart messages:
// header and meta in the first part, each piece of the payload in one of its own. No payload is copied.
//
// Threads: a Socket belongs to one thread; a Context may be shared by all.
// Memory:  a received Message's pieces hold ZeroMQ's own buffers; sent pieces are held until libzmq is done
//          with them. At most `queue_messages` wait for one peer.
// Errors:  bytes that are no frame give kProtocol or kCorruption and are gone; the socket goes on. Nothing
//          blocks, but for the resolver when a host is a name.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "proto/frame.h"

namespace isthmus::transport {

struct SocketOptions {
  // Of meta and payload together. A larger part is refused before it is allocated, and its sender cut off.
  std::uint64_t max_message_bytes = 256ull << 20;
  int queue_messages = 4096;              // Waiting for one peer, each way.
  std::chrono::milliseconds linger{500};  // How long the last messages may take to leave.
};

// libzmq's I/O thread. Outlives its sockets; its end waits for what lingers.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  friend class Socket;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Who a router's message came from: opaque, unique among the connected.
using PeerName = std::string;

struct Incoming {
  PeerName from;  // Empty at a dealer.
  proto::Message message;
};

class Socket {
 public:
  // Listens. Port 0: any free one. kUnavailable names the address when it is taken or not ours ("port 7100
  // of 127.0.0.1 is in use").
  static Result<std::unique_ptr<Socket>> router(Context& context, const core::Address& bind,
                                                const SocketOptions& options);
  // Succeeds whether or not anybody listens yet: libzmq keeps trying, and goes on when a peer comes back.
  static Result<std::unique_ptr<Socket>> dealer(Context& context, const core::Address& connect,
                                                const SocketOptions& options);
  ~Socket();

  // Router: `to` names the peer: kNotFound when it is gone. kResourceExhausted when its queue is full,
  // kInvalidArgument for a message over the limit. The message is then still the caller's. kUnavailable:
  // the peer went away half-way, and the message with it.
  Status send(proto::Message&& message, const PeerName& to = {});

  // The next message; nullopt when there is none now; kProtocol or kCorruption for one that was refused.
  Result<std::optional<Incoming>> receive();

  // Router: the port it listens on.
  std::uint16_t port() const noexcept;

  // Bytes of header, meta and payload, since the start. Refused messages count as received.
  std::uint64_t sent_bytes() const noexcept;
  std::uint64_t received_bytes() const noexcept;

 private:
  struct Impl;
  explicit Socket(std::unique_ptr<Impl> impl);
  friend void wait(std::span<Socket* const> sockets, int wake_fd, std::chrono::nanoseconds timeout);
  std::unique_ptr<Impl> impl_;
};

// Returns when a socket may have a message, `wake_fd` (if not -1) is readable, or the time is up; at most
// one millisecond late. Spurious returns are allowed.
void wait(std::span<Socket* const> sockets, int wake_fd, std::chrono::nanoseconds timeout);

}  // namespace isthmus::transport
