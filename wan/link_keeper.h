// Keeps a server's links alive: listens, dials, shakes hands, serves streams until they end, dials again.
//
// Threads: the wan thread, apart from create-time listen(), and find() and links() (fixed before it starts).
// Memory:  at most kMaxHandshakes strangers beside the streams that the config allows; the oldest goes first.
// Errors:  listen() names the address; everything later is told to the links, or counted for strangers.

#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "wan/endpoint.h"
#include "wan/link.h"
#include "wan/link_backoff.h"
#include "wan/link_handshake.h"
#include "wan/link_resolver.h"
#include "wan/stream.h"

namespace isthmus::wan {

class LinkKeeper {
 public:
  static constexpr std::size_t kMaxHandshakes = 64;

  // `options` and `handler` outlive it. `tls` is nothing on plaintext links.
  LinkKeeper(boost::asio::io_context& io, const EndpointOptions& options, Handler& handler,
             std::optional<boost::asio::ssl::context> tls);

  // Before the thread starts. kUnavailable: "address 127.0.0.1:7200 (wan of region frankfurt) is in use".
  Status listen();
  std::uint16_t port() const { return port_; }

  // Spawns the listener and the dialers.
  void start();
  // Ends everything within a second: frames in hand are written, peers are told, sockets close. The Handler
  // hears nothing more. The context then has nothing left to run.
  void stop();

  // nullptr when there is no such peer.
  Link* find(Peer peer);
  std::span<const std::unique_ptr<Link>> links() const { return links_; }
  void set_clock(Step clock);  // Any thread.
  void tell_clock();           // To all peers now, not with the next heartbeat.
  void resume();

  std::uint64_t refused_strangers() const { return refused_strangers_; }
  std::uint64_t queued_bytes() const;
  std::uint64_t lost_messages() const;
  // Ends when nothing is queued; kTimeout, or kUnavailable when something was lost meanwhile.
  boost::asio::awaitable<Status> flush(core::TimePoint deadline);

 private:
  using Tcp = boost::asio::ip::tcp;
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  // One stream of a link that we dial, through all its connections.
  struct Dialer {
    Link& link;
    std::uint32_t stream;
    Backoff backoff;
    Resolver resolver;
    boost::asio::steady_timer nap;
  };

  void make_links();
  bool is_listened_to() const;
  core::Address address_of(Peer peer) const;
  std::shared_ptr<Stream> make_stream(Tcp::socket socket);
  void spawn(Task<void> task);

  // Accepting.
  Task<void> accept();
  Task<void> serve(std::shared_ptr<Stream> stream);
  void make_room_for_a_handshake();
  Task<Result<Admission>> admit(std::shared_ptr<Stream> stream);
  Task<Result<Admission>> answer(std::shared_ptr<Stream> stream, std::variant<Admission, Refusal> verdict);
  Link* claimed_link(const Stream& stream);
  void note_unadmitted(const Stream& stream, const Status& why, Link* link);

  // Dialling.
  Task<void> dial(Dialer& dialer);
  Task<Status> dial_once(Dialer& dialer, std::shared_ptr<Stream> stream);
  Task<Result<Admission>> greet(Dialer& dialer, Stream& stream);

  // Serving.
  Task<Status> run(Link& link, Admission admission, std::shared_ptr<Stream> stream);
  Task<Status> read(Link& link, Stream& stream);
  Task<Status> deliver(Link& link, Stream& stream, proto::Message message);
  void note_written();

  void say(const std::string& text) const;

  boost::asio::io_context& io_;
  const EndpointOptions& options_;
  Handler& handler_;
  const LocalSide local_;
  std::optional<boost::asio::ssl::context> tls_;
  const std::string ca_;

  std::vector<std::unique_ptr<Link>> links_;
  std::map<Peer, Link*> by_peer_;
  std::atomic<Step> clock_{0};

  Tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  boost::asio::steady_timer accept_nap_;
  std::list<Dialer> dialers_;
  std::set<std::shared_ptr<Stream>> streams_;      // All that exist, until their task has ended.
  std::list<std::shared_ptr<Stream>> handshakes_;  // Accepted and not yet admitted, oldest first.
  std::set<boost::asio::steady_timer*> flushers_;  // Woken when a queue runs empty.

  bool stopping_ = false;
  std::size_t tasks_ = 0;
  boost::asio::steady_timer last_call_;  // Of stop().
  std::uint64_t refused_strangers_ = 0;
  core::TimePoint told_stranger_at_{};
};

}  // namespace isthmus::wan
