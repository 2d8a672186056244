#include "wan/stream.h"

#include <netinet/tcp.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/verify_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "core/bytes.h"

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kLinger{500};
constexpr core::Duration kShortestTick = std::chrono::milliseconds(1);
constexpr int kUnsentBytes = 256 << 10;  // In the kernel: what is queued there cannot be overtaken.

void set_options(Stream::Socket& socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>(kUnsentBytes),
                    ignored);
}

}  // namespace

std::string in_seconds(core::Duration time) {
  std::string text = std::to_string(std::chrono::duration<double>(time).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

std::uint64_t frame_bytes(const proto::Message& message) {
  return proto::kHeaderBytes + message.meta.size() + message.payload_bytes();
}

Stream::Stream(Socket socket, asio::ssl::context* tls, std::string ca)
    : socket_(std::move(socket)),
      ca_(std::move(ca)),
      deadline_(socket_.get_executor()),
      wake_writer_(socket_.get_executor()),
      wake_reader_(socket_.get_executor()),
      alive_timer_(socket_.get_executor()) {
  if (tls != nullptr) tls_.emplace(socket_, *tls);
}

void Stream::expect_within(core::Duration limit, std::string what) {
  deadline_.expires_after(limit);
  deadline_.async_wait([weak = weak_from_this(), number = ++deadline_number_,
                        what = std::move(what)](const error_code& error) {
    const std::shared_ptr<Stream> self = weak.lock();
    if (self && !error && number == self->deadline_number_) self->fail({ErrorCode::kTimeout, what});
  });
}

void Stream::no_deadline() {
  ++deadline_number_;
  deadline_.cancel();
}

asio::awaitable<Status> Stream::connect(TcpEndpoints endpoints) {
  if (failed()) co_return why_;
  auto [error, endpoint] = co_await asio::async_connect(socket_, endpoints, kToken);
  if (error) co_return describe(error);
  co_return Status();
}

// Keeps why the peer's certificate was not trusted: afterwards OpenSSL only says that it was not.
bool Stream::note_verification(bool trusted, X509_STORE_CTX* store) {
  if (!trusted) {
    verify_error_ = X509_STORE_CTX_get_error(store);
    if (const X509* certificate = X509_STORE_CTX_get0_cert(store))
      claimed_region_ = identity_of(certificate).region;
  }
  return trusted;
}

asio::awaitable<Status> Stream::secure(Side side) {
  set_options(socket_);
  if (!tls_) co_return Status();
  tls_->set_verify_callback([this](bool trusted, asio::ssl::verify_context& context) {
    return note_verification(trusted, context.native_handle());
  });
  const auto type = side == Side::kDialer ? asio::ssl::stream_base::client : asio::ssl::stream_base::server;
  auto [error] = co_await tls_->async_handshake(type, kToken);
  if (error) co_return describe(error);
  identity_ = peer_identity(tls_->native_handle());
  if (!identity_) co_return Status(ErrorCode::kRefused, "the peer shows no certificate");
  co_return Status();
}

Status Stream::describe(const error_code& error) const {
  if (failed()) return why_;
  if (verify_error_ != X509_V_OK)
    return {ErrorCode::kRefused, describe_untrusted(verify_error_, claimed_region_, ca_)};
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated)
    return {ErrorCode::kUnavailable, "closed by the peer"};
  if (error.category() != asio::error::get_ssl_category()) return {ErrorCode::kUnavailable, error.message()};
  if (const auto alert = describe_alert(ERR_GET_REASON(static_cast<unsigned long>(error.value()))))
    return {ErrorCode::kRefused, "our certificate is refused: " + *alert};
  return {ErrorCode::kProtocol, "TLS: " + error.message()};
}

asio::awaitable<Status> Stream::read(std::span<std::byte> into) {
  while (!into.empty()) {
    const asio::mutable_buffer buffer(into.data(), into.size());
    error_code error;
    std::size_t bytes = 0;
    if (tls_) {
      std::tie(error, bytes) = co_await tls_->async_read_some(buffer, kToken);
    } else {
      std::tie(error, bytes) = co_await socket_.async_read_some(buffer, kToken);
      plain_received_bytes_ += bytes;
    }
    if (error) co_return describe(error);
    into = into.subspan(bytes);
  }
  co_return failed() ? why_ : Status();
}

asio::awaitable<Result<proto::Message>> Stream::receive(std::uint64_t max_payload_bytes) {
  std::array<std::byte, proto::kHeaderBytes> bytes;
  if (Status status = co_await read(bytes); !status.ok()) co_return status;
  const Result<proto::Header> header = proto::decode_header(bytes, max_payload_bytes);
  if (!header.ok()) {
    if (const auto version = static_cast<std::uint8_t>(bytes[4]); version != proto::kWireVersion)
      refused_version_ = version;
    co_return header.status();
  }
  proto::Message message;
  message.kind = header->kind;
  message.request_id = header->request_id;
  message.meta.resize(header->meta_bytes);
  if (Status status = co_await read(std::as_writable_bytes(std::span(message.meta))); !status.ok())
    co_return status;
  if (Status status = proto::check_meta(bytes, message.meta); !status.ok()) co_return status;
  if (header->payload_bytes > 0) {
    core::Buffer payload(header->payload_bytes);
    if (Status status = co_await read(payload.writable()); !status.ok()) co_return status;
    message.payload.push_back(std::move(payload).share(header->payload_bytes));
  }
  co_return message;
}

asio::awaitable<Status> Stream::write(const proto::Message& message) {
  const std::array<std::byte, proto::kHeaderBytes> header = proto::encode_header(message);
  std::vector<asio::const_buffer> pieces;
  pieces.reserve(2 + message.payload.size());
  pieces.emplace_back(header.data(), header.size());
  // An empty buffer in the middle would end a write over TLS.
  if (!message.meta.empty()) pieces.emplace_back(message.meta.data(), message.meta.size());
  for (const core::SharedBytes& piece : message.payload)
    if (piece.size() > 0) pieces.emplace_back(piece.view.data(), piece.size());
  error_code error;
  std::size_t bytes = 0;
  if (tls_) {
    std::tie(error, bytes) = co_await asio::async_write(*tls_, pieces, kToken);
  } else {
    std::tie(error, bytes) = co_await asio::async_write(socket_, pieces, kToken);
    plain_sent_bytes_ += bytes;
  }
  co_return error ? describe(error) : Status();
}

asio::awaitable<Status> Stream::transmit(const proto::Message& message) { co_return co_await write(message); }

void Stream::open(Hooks hooks) {
  hooks_ = std::move(hooks);
  opened_ = true;
}

void Stream::enqueue(proto::Message message) {
  queue_.push_back(std::move(message));
  wake_writer_.cancel();
}

void Stream::heartbeat_due() {
  heartbeat_due_ = true;
  wake_writer_.cancel();
}

std::optional<proto::Message> Stream::next() {
  std::optional<proto::Message> message;
  if (finishing_) return message;
  if (heartbeat_due_) {
    heartbeat_due_ = false;
    message = hooks_.heartbeat();
  } else if (!queue_.empty()) {
    message = std::move(queue_.front());
    queue_.pop_front();
  }
  return message;
}

asio::awaitable<void> Stream::write_queued(std::shared_ptr<Stream> self) { co_await self->write_all(); }

asio::awaitable<void> Stream::write_all() {
  while (!failed()) {
    const std::optional<proto::Message> message = next();
    if (!message && finishing_) {
      error_code ignored;
      socket_.shutdown(Socket::shutdown_send, ignored);
      co_return;
    }
    if (!message) {
      wake_writer_.expires_at(std::chrono::steady_clock::time_point::max());
      co_await wake_writer_.async_wait(kToken);
      continue;
    }
    Status status = co_await write(*message);
    if (message->kind != proto::Kind::kLinkHeartbeat) hooks_.account(frame_bytes(*message), status.ok());
    if (!status.ok()) fail(std::move(status));
  }
}

asio::awaitable<void> Stream::keep_alive(std::shared_ptr<Stream> self, core::LinksConfig links) {
  const core::Duration tick = std::max(kShortestTick, std::min(links.heartbeat, links.silence / 8));
  core::TimePoint heard = std::chrono::steady_clock::now();
  core::TimePoint next_beat = heard;
  std::uint64_t received = self->received_bytes();
  while (!self->failed()) {
    const core::TimePoint now = std::chrono::steady_clock::now();
    if (self->received_bytes() != received || self->paused_) {
      received = self->received_bytes();
      heard = now;
    } else if (now - heard > links.silence - tick) {
      self->fail({ErrorCode::kTimeout, "brought nothing for " + in_seconds(links.silence)});
      co_return;
    }
    if (now >= next_beat) {
      self->heartbeat_due();
      next_beat = now + links.heartbeat;
    }
    self->alive_timer_.expires_after(tick);
    co_await self->alive_timer_.async_wait(kToken);
  }
}

asio::awaitable<void> Stream::pause() {
  if (failed() || finishing_) co_return;
  paused_ = true;
  wake_reader_.expires_at(std::chrono::steady_clock::time_point::max());
  co_await wake_reader_.async_wait(kToken);
  paused_ = false;
}

void Stream::resume() { wake_reader_.cancel(); }

void Stream::forget_queue() {
  for (const proto::Message& message : std::exchange(queue_, {})) hooks_.account(frame_bytes(message), false);
}

void Stream::fail(Status why) {
  if (failed() || why.ok()) return;
  why_ = std::move(why);
  error_code ignored;
  socket_.close(ignored);
  no_deadline();
  wake_writer_.cancel();
  wake_reader_.cancel();
  alive_timer_.cancel();
  forget_queue();
}

void Stream::finish() {
  finishing_ = true;
  forget_queue();
  wake_writer_.cancel();
  wake_reader_.cancel();
}

asio::awaitable<void> Stream::linger() {
  if (failed()) co_return;
  expect_within(kLinger, "refused");
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  std::array<std::byte, 4096> ignored;
  while (!error) {
    auto [read_error, bytes] = co_await socket_.async_read_some(asio::buffer(ignored), kToken);
    error = read_error;
  }
  fail({ErrorCode::kRefused, "refused"});
}

std::uint64_t Stream::sent_bytes() const {
  if (!tls_) return plain_sent_bytes_;
  return BIO_number_written(SSL_get_wbio(const_cast<Stream*>(this)->tls_->native_handle()));
}

std::uint64_t Stream::received_bytes() const {
  if (!tls_) return plain_received_bytes_;
  return BIO_number_read(SSL_get_rbio(const_cast<Stream*>(this)->tls_->native_handle()));
}

}  // namespace isthmus::wan
