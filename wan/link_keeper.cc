#include "wan/link_keeper.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "wan/certificates.h"

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kLastCall{500};

}  // namespace

LinkKeeper::LinkKeeper(asio::io_context& io, const EndpointOptions& options, Handler& handler,
                       std::optional<asio::ssl::context> tls)
    : io_(io),
      options_(options),
      handler_(handler),
      local_{options.config, options.layout, options.region, options.server, options.incarnation},
      tls_(std::move(tls)),
      ca_(key_files(options.config.security.directory, "").ca),
      acceptor_(io),
      accept_nap_(io),
      last_call_(io) {
  make_links();
}

void LinkKeeper::make_links() {
  const core::JobConfig& config = options_.config;
  for (std::uint32_t region = 0; region < config.regions.size(); ++region) {
    if (region == options_.region) continue;
    for (std::uint32_t server = 0; server < config.regions[region].servers.size(); ++server) {
      const Peer peer{region, server};
      links_.push_back(std::make_unique<Link>(peer, peer_name(config, peer), config.links.streams, handler_,
                                              options_.log));
      by_peer_[peer] = links_.back().get();
    }
  }
}

Link* LinkKeeper::find(Peer peer) {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : found->second;
}

void LinkKeeper::say(const std::string& text) const {
  if (options_.log) options_.log(text);
}

// Later regions dial us; the last one has none.
bool LinkKeeper::is_listened_to() const { return options_.region + 1 < options_.config.regions.size(); }

Status LinkKeeper::listen() {
  if (!is_listened_to()) return {};
  const core::ServerConfig& server = options_.config.regions[options_.region].servers[options_.server];
  const core::Address& address = server.wan_bind.host.empty() ? server.wan : server.wan_bind;
  const std::string what = "address " + address.host + ":" + std::to_string(address.port) +
                           " (wan of region " +
                           peer_name(options_.config, {options_.region, options_.server}) + ")";
  const Result<TcpEndpoints> endpoints = lookup(address);
  if (!endpoints.ok()) return Status(endpoints.status()).with_context(what);
  const Tcp::endpoint& endpoint = endpoints->front();
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(Tcp::acceptor::max_listen_connections, error);
  if (error == asio::error::address_in_use) return {ErrorCode::kUnavailable, what + " is in use"};
  if (error) return {ErrorCode::kUnavailable, what + ": " + error.message()};
  port_ = acceptor_.local_endpoint(error).port();
  return {};
}

core::Address LinkKeeper::address_of(Peer peer) const {
  for (const auto& [dialed, address] : options_.via)
    if (dialed == peer) return address;
  return options_.config.regions[peer.region].servers[peer.server].wan;
}

void LinkKeeper::start() {
  if (acceptor_.is_open()) spawn(accept());
  const EndpointTiming& timing = options_.timing;
  for (const std::unique_ptr<Link>& link : links_) {
    if (link->peer().region > options_.region) continue;
    for (std::uint32_t stream = 0; stream < options_.config.links.streams; ++stream) {
      const core::Random random(link->id(), {link->peer().region, link->peer().server, stream});
      dialers_.push_back({*link, stream, Backoff(timing.backoff_min, timing.backoff_max, random),
                          Resolver(io_.get_executor()), asio::steady_timer(io_)});
      spawn(dial(dialers_.back()));
    }
  }
}

void LinkKeeper::spawn(Task<void> task) {
  ++tasks_;
  asio::co_spawn(io_, std::move(task), [this](const std::exception_ptr& thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      say(std::string("wan: ") + error.what());
    }
    if (--tasks_ == 0 && stopping_) last_call_.cancel();
  });
}

std::shared_ptr<Stream> LinkKeeper::make_stream(Tcp::socket socket) {
  auto stream = std::make_shared<Stream>(std::move(socket), tls_ ? &*tls_ : nullptr, ca_);
  streams_.insert(stream);
  return stream;
}

void LinkKeeper::stop() {
  stopping_ = true;
  const Status ended(ErrorCode::kCancelled, "this server ends");
  error_code ignored;
  acceptor_.close(ignored);
  accept_nap_.cancel();
  for (Dialer& dialer : dialers_) {
    dialer.resolver.cancel();
    dialer.nap.cancel();
  }
  for (asio::steady_timer* flusher : flushers_) flusher->cancel();
  for (const std::shared_ptr<Stream>& stream : streams_) {
    if (stream->opened()) {
      stream->finish();
    } else {
      stream->fail(ended);
    }
  }
  if (tasks_ == 0) return;
  last_call_.expires_after(kLastCall);
  last_call_.async_wait([this, ended](const error_code&) {
    for (const std::shared_ptr<Stream>& stream : streams_) stream->fail(ended);
  });
}

void LinkKeeper::set_clock(Step clock) { clock_.store(clock, std::memory_order_relaxed); }

void LinkKeeper::tell_clock() {
  for (const std::unique_ptr<Link>& link : links_) link->heartbeat_due();
}

void LinkKeeper::resume() {
  for (const std::unique_ptr<Link>& link : links_) link->resume();
}

std::uint64_t LinkKeeper::queued_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::unique_ptr<Link>& link : links_) bytes += link->queued_bytes();
  return bytes;
}

std::uint64_t LinkKeeper::lost_messages() const {
  std::uint64_t lost = 0;
  for (const std::unique_ptr<Link>& link : links_) lost += link->lost_messages();
  return lost;
}

void LinkKeeper::note_written() {
  if (flushers_.empty() || queued_bytes() > 0) return;
  for (asio::steady_timer* flusher : flushers_) flusher->cancel();
}

asio::awaitable<Status> LinkKeeper::flush(core::TimePoint deadline) {
  const std::uint64_t lost_before = lost_messages();
  asio::steady_timer written(io_);
  flushers_.insert(&written);
  Status status;
  while (status.ok() && queued_bytes() > 0) {
    if (stopping_) {
      status = {ErrorCode::kCancelled, "flush: this server ends"};
    } else if (std::chrono::steady_clock::now() >= deadline) {
      status = {ErrorCode::kTimeout,
                "flush: " + std::to_string(queued_bytes()) + " bytes are not yet written"};
    } else {
      written.expires_at(deadline);
      co_await written.async_wait(kToken);
    }
  }
  flushers_.erase(&written);
  if (const std::uint64_t lost = lost_messages() - lost_before; status.ok() && lost > 0)
    status = {ErrorCode::kUnavailable,
              "flush: " + std::to_string(lost) + " messages were lost with their stream"};
  co_return status;
}

// ---- Serving.

asio::awaitable<Status> LinkKeeper::run(Link& link, Admission admission, std::shared_ptr<Stream> stream) {
  if (stopping_) co_return Status(ErrorCode::kCancelled, "this server ends");
  Stream* const raw = stream.get();  // The hooks live in the stream.
  stream->open({[this, &link, raw] {
                  return link.make_heartbeat(*raw, clock_.load(std::memory_order_relaxed),
                                             std::chrono::steady_clock::now());
                },
                [this, &link](std::uint64_t bytes, bool written) {
                  link.account(bytes, written);
                  note_written();
                }});
  spawn(Stream::write_queued(stream));
  spawn(Stream::keep_alive(stream, options_.config.links));
  link.attach(admission, stream);
  Status why;
  try {
    why = co_await read(link, *stream);
  } catch (const std::bad_alloc&) {
    why = Status(ErrorCode::kResourceExhausted, "no memory for a message");
  }
  stream->fail(why);
  why = stream->why();
  if (stopping_) co_return why;
  if (why.code() == ErrorCode::kProtocol || why.code() == ErrorCode::kCorruption ||
      why.code() == ErrorCode::kRefused)
    link.note_refusal(why, std::chrono::steady_clock::now());
  link.detach(stream, why);
  co_return why;
}

asio::awaitable<Status> LinkKeeper::read(Link& link, Stream& stream) {
  for (;;) {
    Result<proto::Message> message = co_await stream.receive(options_.config.limits.message_bytes);
    if (!message.ok()) co_return message.status();
    if (stopping_) continue;  // Read on, so that the peer's end is seen.
    Status status;
    if (message->kind == proto::Kind::kLinkHeartbeat) {
      status = link.note_heartbeat(stream, *message, std::chrono::steady_clock::now());
    } else {
      status = co_await deliver(link, stream, *std::move(message));
    }
    if (!status.ok()) co_return status;
  }
}

asio::awaitable<Status> LinkKeeper::deliver(Link& link, Stream& stream, proto::Message message) {
  switch (message.kind) {
    case proto::Kind::kContribution:
    case proto::Kind::kGlobalDelta:
    case proto::Kind::kGlobalDeltaAck:
    case proto::Kind::kResetRequest:
    case proto::Kind::kReset:
    case proto::Kind::kRefuse: break;
    default:
      co_return Status(ErrorCode::kProtocol,
                       "'" + std::string(proto::to_string(message.kind)) + "' on an open stream");
  }
  while (!stopping_ && !handler_.on_message(link.peer(), message)) {
    co_await stream.pause();
    if (stream.failed()) co_return stream.why();
  }
  co_return Status();
}

}  // namespace isthmus::wan
