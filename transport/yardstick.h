// Plain ZeroMQ doing the exchange of a worker and a shard, and nothing else: what `isthmus bench push-pull`
// measures them against. A DEALER sends single parts without a copy; a ROUTER on a thread of its own gives
// each to a function and sends back what it returns.
//
// Threads: a server owns its thread, on which `serve` is called; a client belongs to one thread.
// Memory:  what is under way. Sent bytes are not copied: they stay as they are until all answers are there.
// Errors:  a socket that cannot be made is kUnavailable; a call that fails otherwise is a bug
// (ISTHMUS_CHECK),
//          since both ends are ours and on one machine.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "isthmus/status.h"

namespace isthmus::transport {

class YardstickServer {
 public:
  // What to answer a request with: its bytes stay as they are while the server lives. May be empty.
  using Serve = std::function<std::span<const std::byte>(std::span<const std::byte> request)>;

  static Result<std::unique_ptr<YardstickServer>> start(Serve serve);
  ~YardstickServer();
  std::uint16_t port() const noexcept;  // Of 127.0.0.1.

 private:
  struct Impl;
  explicit YardstickServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class YardstickClient {
 public:
  static Result<std::unique_ptr<YardstickClient>> connect(std::uint16_t port);
  ~YardstickClient();

  void send(std::span<const std::byte> request);
  // Waits for the next answer, in the order of the requests. Valid until the next call.
  std::span<const std::byte> receive();

 private:
  struct Impl;
  explicit YardstickClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace isthmus::transport
