// One connection of a link: frames in and out, over TLS or, where the config says so, bare TCP.
//
// A stream fails once and for good: fail() keeps the first reason and closes the socket, which ends every
// operation in flight. Whoever runs it learns of it as the result of receive().
//
// Threads: the wan thread.
// Memory:  one frame being received; the queue of frames to be sent, whose bytes are shared, not copied.
// Errors:  Status values; kRefused when certificates are the reason, kProtocol and kCorruption for bytes
//          that are no frames, kUnavailable and kTimeout for the network.

#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/clock.h"
#include "core/job_config.h"
#include "isthmus/status.h"
#include "proto/frame.h"
#include "wan/link_resolver.h"
#include "wan/tls.h"

namespace isthmus::wan {

// Header, meta and payload: what a message weighs in a queue.
std::uint64_t frame_bytes(const proto::Message& message);
// "0.5 s"
std::string in_seconds(core::Duration time);

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  enum class Side { kDialer, kAcceptor };

  // Called on the wan thread while the stream is open.
  struct Hooks {
    std::function<proto::Message()> heartbeat;  // Made when it is written, so that its time is true.
    std::function<void(std::uint64_t bytes, bool written)> account;  // A queued frame was written or lost.
  };

  // `tls` is nullptr on a plaintext link; `ca` is the CA's file, for error texts.
  Stream(Socket socket, boost::asio::ssl::context* tls, std::string ca);

  // ---- Opening. Each ends within the deadline given last.
  void expect_within(core::Duration limit, std::string what);
  void no_deadline();
  boost::asio::awaitable<Status> connect(TcpEndpoints endpoints);
  boost::asio::awaitable<Status> secure(Side side);
  // The peer's proven identity; nothing on a plaintext link.
  const std::optional<Identity>& identity() const { return identity_; }
  // Whom an untrusted certificate says it is of: a claim, for error texts.
  const std::string& claimed_region() const { return claimed_region_; }
  // Before open() only; afterwards enqueue().
  boost::asio::awaitable<Status> transmit(const proto::Message& message);

  // ---- Open.
  // From now on these two run beside the reader, until the stream has failed. keep_alive() sends heartbeats
  // and ends a stream that brings nothing for `silence`, unless it is we who do not read.
  void open(Hooks hooks);
  bool opened() const { return opened_; }
  static boost::asio::awaitable<void> write_queued(std::shared_ptr<Stream> self);
  static boost::asio::awaitable<void> keep_alive(std::shared_ptr<Stream> self, core::LinksConfig links);
  void enqueue(proto::Message message);
  void heartbeat_due();
  // Allocates nothing before the lengths have passed their limits.
  boost::asio::awaitable<Result<proto::Message>> receive(std::uint64_t max_payload_bytes);
  // The version in the last header that was refused; 0: none was.
  std::uint8_t refused_version() const { return refused_version_; }

  // Back-pressure: suspends the reader until resume(), or until the stream fails or finishes.
  boost::asio::awaitable<void> pause();
  void resume();
  bool paused() const { return paused_; }

  // ---- Ending.
  void fail(Status why);
  bool failed() const { return !why_.ok(); }
  const Status& why() const { return why_; }
  // Writes out the frame in hand, forgets the others, and tells the peer that no more will come; the reader
  // then sees the peer's end.
  void finish();
  // For a connection that is refused: lets the peer read what was said last.
  boost::asio::awaitable<void> linger();

  // Under TLS.
  std::uint64_t sent_bytes() const;
  std::uint64_t received_bytes() const;

  // The peer's last heartbeat, to be echoed.
  std::uint64_t echo_us = 0;
  core::TimePoint echo_at{};

 private:
  boost::asio::awaitable<Status> read(std::span<std::byte> into);
  boost::asio::awaitable<Status> write(const proto::Message& message);
  boost::asio::awaitable<void> write_all();
  std::optional<proto::Message> next();
  void forget_queue();
  Status describe(const boost::system::error_code& error) const;
  bool note_verification(bool trusted, X509_STORE_CTX* store);

  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
  const std::string ca_;
  std::optional<Identity> identity_;
  std::string claimed_region_;
  int verify_error_ = 0;
  std::uint8_t refused_version_ = 0;

  boost::asio::steady_timer deadline_;
  std::uint64_t deadline_number_ = 0;  // So that a deadline that was lifted while it fired does nothing.

  bool opened_ = false;
  bool finishing_ = false;
  bool heartbeat_due_ = false;
  bool paused_ = false;
  Hooks hooks_;
  std::deque<proto::Message> queue_;
  boost::asio::steady_timer wake_writer_;
  boost::asio::steady_timer wake_reader_;
  boost::asio::steady_timer alive_timer_;
  Status why_;

  std::uint64_t plain_sent_bytes_ = 0;
  std::uint64_t plain_received_bytes_ = 0;
};

}  // namespace isthmus::wan
