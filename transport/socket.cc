#include "transport/socket.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>
#include <zmq.hpp>

#if defined(__SANITIZE_THREAD__)
// libzmq comes without instrumentation: its threads' reads and writes must not be held against ours.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so.5\n"; }
#endif

namespace isthmus::transport {
namespace {

constexpr std::chrono::nanoseconds kLongestWait = std::chrono::hours(1);

Status zmq_error(ErrorCode code, const std::string& what) {
  return {code, what + ": " + zmq_strerror(zmq_errno())};
}

// A piece on its way: what libzmq gives back, on its own thread, when it is done.
struct InFlight {
  core::SharedBytes bytes;
  // libzmq orders our write before its release() by means that sanitizers do not see; this they do.
  std::atomic<bool> handed_over{false};
};

void release(void*, void* hint) {
  auto* piece = static_cast<InFlight*>(hint);
  (void)piece->handed_over.load(std::memory_order_acquire);
  delete piece;
}

// `piece` as a part that shares its bytes. libzmq never writes to them.
zmq::message_t make_part(core::SharedBytes&& piece) {
  auto held = std::make_unique<InFlight>();
  held->bytes = std::move(piece);
  auto* data = const_cast<std::byte*>(held->bytes.view.data());
  zmq::message_t part(data, held->bytes.size(), &release, held.get());
  held.release()->handed_over.store(true, std::memory_order_release);
  return part;
}

zmq::message_t make_first_part(const proto::Message& message) {
  zmq::message_t part(proto::kHeaderBytes + message.meta.size());
  const auto header = proto::encode_header(message);
  std::memcpy(part.data(), header.data(), header.size());
  if (!message.meta.empty())
    std::memcpy(part.data<std::byte>() + header.size(), message.meta.data(), message.meta.size());
  return part;
}

// A received part as bytes that keep its buffer.
core::SharedBytes share(zmq::message_t&& part) {
  auto owner = std::make_shared<zmq::message_t>(std::move(part));
  const std::span<const std::byte> view(owner->data<const std::byte>(), owner->size());
  return {std::move(owner), view};
}

std::span<const std::byte> bytes_of(const zmq::message_t& part) {
  return {part.data<const std::byte>(), part.size()};
}

// The numeric addresses of `host`, IPv4 ones first: both ends of a name that has both must choose alike.
std::vector<std::string> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  std::vector<std::string> addresses;
  for (int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
      std::array<char, NI_MAXHOST> text{};
      if (entry->ai_family == family && ::getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(),
                                                      text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
        addresses.emplace_back(text.data());
    }
  }
  ::freeaddrinfo(found);
  return addresses;
}

bool is_ipv6(const std::string& numeric) { return numeric.find(':') != std::string::npos; }

// "127.0.0.1:7100", "[::1]:7100"
std::string text_of(const std::string& host, std::uint16_t port) {
  return (is_ipv6(host) ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace

struct Context::Impl {
  zmq::context_t context{1};
};

Context::Context() : impl_(std::make_unique<Impl>()) {}
Context::~Context() = default;

struct Socket::Impl {
  Impl(zmq::context_t& context, zmq::socket_type type, const SocketOptions& given)
      : socket(context, type), is_router(type == zmq::socket_type::router), options(given) {
    const auto limit = std::min<std::uint64_t>(options.max_message_bytes, INT64_MAX - proto::kHeaderBytes);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(limit + proto::kHeaderBytes));
    socket.set(zmq::sockopt::linger, static_cast<int>(options.linger.count()));
    socket.set(zmq::sockopt::sndhwm, options.queue_messages);
    socket.set(zmq::sockopt::rcvhwm, options.queue_messages);
    socket.set(zmq::sockopt::tcp_keepalive, 1);
    socket.set(zmq::sockopt::tcp_keepalive_idle, 30);
    socket.set(zmq::sockopt::tcp_keepalive_intvl, 10);
    socket.set(zmq::sockopt::tcp_keepalive_cnt, 3);
    socket.set(zmq::sockopt::handshake_ivl, 5000);
    if (is_router) {
      socket.set(zmq::sockopt::router_mandatory, true);  // A peer that is gone is told, not ignored.
    } else {
      socket.set(zmq::sockopt::reconnect_ivl, 50);
      socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
      socket.set(zmq::sockopt::connect_timeout, 5000);
    }
  }

  // False when there is nothing to receive.
  bool receive_part(zmq::message_t& part) {
    return zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) >= 0;
  }
  bool send_part(zmq::message_t& part, bool more) {
    const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
    return zmq_msg_send(part.handle(), socket.handle(), flags) >= 0;
  }

  Status address_to(const PeerName& to);
  Status bind(const core::Address& address);
  Result<proto::Message> receive_frame(const zmq::message_t& first);
  Status receive_payload(std::uint64_t bytes, bool more, proto::Message& message);

  zmq::socket_t socket;
  bool is_router;
  SocketOptions options;
  std::uint16_t port = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

Status Socket::Impl::bind(const core::Address& address) {
  const std::string where = "port " + std::to_string(address.port) + " of " + address.host;
  const std::vector<std::string> hosts = resolve(address.host);
  if (hosts.empty()) return {ErrorCode::kUnavailable, "cannot listen on " + where + ": no such host"};
  socket.set(zmq::sockopt::ipv6, is_ipv6(hosts.front()));
  if (zmq_bind(socket.handle(), ("tcp://" + text_of(hosts.front(), address.port)).c_str()) != 0) {
    if (zmq_errno() != EADDRINUSE) return zmq_error(ErrorCode::kUnavailable, "cannot listen on " + where);
    return {ErrorCode::kUnavailable, where + " is in use; end what listens there, or choose another port"};
  }
  const std::string bound = socket.get(zmq::sockopt::last_endpoint);
  port = static_cast<std::uint16_t>(std::stoul(bound.substr(bound.rfind(':') + 1)));
  return {};
}

// The router's first part. Only here can a queue be full: libzmq then takes all parts or none.
Status Socket::Impl::address_to(const PeerName& to) {
  zmq::message_t name(to.data(), to.size());
  if (send_part(name, true)) return {};
  if (zmq_errno() == EAGAIN) return {ErrorCode::kResourceExhausted, "the peer's queue is full"};
  if (zmq_errno() == EHOSTUNREACH) return {ErrorCode::kNotFound, "the peer is gone"};
  return zmq_error(ErrorCode::kInternal, "send");
}

// Takes the rest of a frame off the socket, good or bad.
Result<proto::Message> Socket::Impl::receive_frame(const zmq::message_t& first) {
  received += first.size();
  const Result<proto::Header> header = proto::decode_header(bytes_of(first), options.max_message_bytes);
  Status status = header.status();
  if (status.ok() && first.size() != proto::kHeaderBytes + header->meta_bytes)
    status = {ErrorCode::kProtocol, "the first part is not a header and its meta"};
  proto::Message message;
  if (status.ok()) {
    message.kind = header->kind;
    message.request_id = header->request_id;
    message.meta.assign(first.data<const char>() + proto::kHeaderBytes, header->meta_bytes);
    status = proto::check_meta(bytes_of(first).first(proto::kHeaderBytes), message.meta);
  }
  Status payload = receive_payload(status.ok() ? header->payload_bytes : 0, first.more(), message);
  if (!status.ok()) return status;
  if (!payload.ok()) return payload;
  return message;
}

// Takes all remaining parts off the socket and keeps none when they are not the announced payload.
Status Socket::Impl::receive_payload(std::uint64_t bytes, bool more, proto::Message& message) {
  std::uint64_t got = 0;
  bool fits = true;
  while (more) {
    zmq::message_t part;
    if (!receive_part(part)) return zmq_error(ErrorCode::kInternal, "receive");
    more = part.more();
    received += part.size();
    fits = fits && !part.empty() && part.size() <= bytes - got;
    if (!fits) continue;
    got += part.size();
    message.payload.push_back(share(std::move(part)));
  }
  if (fits && got == bytes) return {};
  return {ErrorCode::kProtocol,
          "the parts are not the announced payload of " + std::to_string(bytes) + " bytes"};
}

Socket::Socket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Socket::~Socket() = default;

Result<std::unique_ptr<Socket>> Socket::router(Context& context, const core::Address& bind,
                                               const SocketOptions& options) {
  try {
    auto impl = std::make_unique<Impl>(context.impl_->context, zmq::socket_type::router, options);
    ISTHMUS_RETURN_IF_ERROR(impl->bind(bind));
    return std::unique_ptr<Socket>(new Socket(std::move(impl)));
  } catch (const zmq::error_t& error) {
    return Status(ErrorCode::kInternal, "cannot make a socket: " + std::string(error.what()));
  }
}

Result<std::unique_ptr<Socket>> Socket::dealer(Context& context, const core::Address& connect,
                                               const SocketOptions& options) {
  try {
    auto impl = std::make_unique<Impl>(context.impl_->context, zmq::socket_type::dealer, options);
    const std::string where = text_of(connect.host, connect.port);
    // Resolved here for its family only; libzmq resolves anew at each attempt, since addresses change.
    const std::vector<std::string> found = resolve(connect.host);
    impl->socket.set(zmq::sockopt::ipv6, !found.empty() && is_ipv6(found.front()));
    if (zmq_connect(impl->socket.handle(), ("tcp://" + where).c_str()) != 0)
      return zmq_error(ErrorCode::kInvalidArgument, "cannot connect to " + where);
    return std::unique_ptr<Socket>(new Socket(std::move(impl)));
  } catch (const zmq::error_t& error) {
    return Status(ErrorCode::kInternal, "cannot make a socket: " + std::string(error.what()));
  }
}

Status Socket::send(proto::Message&& message, const PeerName& to) {
  const std::uint64_t bytes = message.meta.size() + message.payload_bytes();
  if (bytes > impl_->options.max_message_bytes || message.meta.size() > proto::kMaxMetaBytes)
    return {ErrorCode::kInvalidArgument, std::string(to_string(message.kind)) + " of " +
                                             std::to_string(bytes) + " bytes is over the limit of " +
                                             std::to_string(impl_->options.max_message_bytes)};
  if (impl_->is_router) ISTHMUS_RETURN_IF_ERROR(impl_->address_to(to));

  std::erase_if(message.payload, [](const core::SharedBytes& piece) { return piece.size() == 0; });
  zmq::message_t first = make_first_part(message);
  if (!impl_->send_part(first, !message.payload.empty())) {
    if (zmq_errno() == EAGAIN) return {ErrorCode::kResourceExhausted, "the queue is full"};
    return zmq_error(ErrorCode::kInternal, "send");
  }
  // libzmq drops the rest of a message whose peer went away, but wants to be given all of it.
  bool whole = true;
  for (std::size_t i = 0; i < message.payload.size(); ++i) {
    zmq::message_t part = make_part(std::move(message.payload[i]));
    whole = impl_->send_part(part, i + 1 < message.payload.size()) && whole;
  }
  message.payload.clear();
  if (!whole) return {ErrorCode::kUnavailable, "the peer went away"};
  impl_->sent += proto::kHeaderBytes + bytes;
  return {};
}

Result<std::optional<Incoming>> Socket::receive() {
  zmq::message_t part;
  if (!impl_->receive_part(part)) {
    if (zmq_errno() == EAGAIN || zmq_errno() == EINTR) return std::optional<Incoming>();
    return zmq_error(ErrorCode::kInternal, "receive");
  }
  Incoming incoming;
  if (impl_->is_router) {
    incoming.from = part.to_string();
    if (!impl_->receive_part(part)) return zmq_error(ErrorCode::kInternal, "receive");
  }
  Result<proto::Message> message = impl_->receive_frame(part);
  if (!message.ok()) return std::move(message).status();
  incoming.message = std::move(*message);
  return std::optional<Incoming>(std::move(incoming));
}

std::uint16_t Socket::port() const noexcept { return impl_->port; }
std::uint64_t Socket::sent_bytes() const noexcept { return impl_->sent; }
std::uint64_t Socket::received_bytes() const noexcept { return impl_->received; }

void wait(std::span<Socket* const> sockets, int wake_fd, std::chrono::nanoseconds timeout) {
  std::vector<zmq_pollitem_t> items;
  items.reserve(sockets.size() + 1);
  for (Socket* socket : sockets) items.push_back({socket->impl_->socket.handle(), 0, ZMQ_POLLIN, 0});
  if (wake_fd >= 0) items.push_back({nullptr, wake_fd, ZMQ_POLLIN, 0});
  timeout = std::clamp(timeout, std::chrono::nanoseconds(0), kLongestWait);
  const long ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  (void)zmq_poll(items.data(), static_cast<int>(items.size()), ms);
}

}  // namespace isthmus::transport
