// A peer's name to its addresses, without stopping the wan thread and without being waited for at the end.
//
// getaddrinfo() may take half a minute when a name server is away, and nothing can interrupt it. So each
// lookup of a name runs on a thread of its own that nobody joins; it shares only a mailbox with us. (Asio's
// own resolver joins its thread when the context is destroyed.)
//
// Threads: a Resolver belongs to the wan thread; lookup() blocks, on any thread.
// Memory:  an abandoned lookup keeps its mailbox until getaddrinfo() returns.
// Errors:  kUnavailable names the host.

#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <vector>

#include "core/job_config.h"
#include "core/mailbox.h"
#include "isthmus/status.h"

namespace isthmus::wan {

using TcpEndpoints = std::vector<boost::asio::ip::tcp::endpoint>;

// All addresses of it, in the system's order of preference.
Result<TcpEndpoints> lookup(const core::Address& address);

class Resolver {
 public:
  explicit Resolver(const boost::asio::any_io_executor& executor) : wake_(executor) {}

  // One at a time. kCancelled after cancel().
  boost::asio::awaitable<Result<TcpEndpoints>> resolve(core::Address address);
  void cancel();

 private:
  using Answer = core::Mailbox<Result<TcpEndpoints>>;
  boost::asio::posix::stream_descriptor wake_;
};

}  // namespace isthmus::wan
