#include "transport/yardstick.h"

#include <atomic>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "core/check.h"

namespace isthmus::transport {
namespace {

void keep(void*, void*) {}  // The sender keeps its bytes.

zmq::message_t part_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), &keep, nullptr};
}

std::span<const std::byte> bytes_of(const zmq::message_t& part) {
  return {part.data<const std::byte>(), part.size()};
}

void receive(zmq::socket_t& socket, zmq::message_t& part) {
  while (zmq_msg_recv(part.handle(), socket.handle(), 0) < 0) ISTHMUS_CHECK(zmq_errno() == EINTR);
}

void send(zmq::socket_t& socket, zmq::message_t&& part, bool more) {
  while (zmq_msg_send(part.handle(), socket.handle(), more ? ZMQ_SNDMORE : 0) < 0)
    ISTHMUS_CHECK(zmq_errno() == EINTR);
}

constexpr int kStop = 1;  // A request of so few bytes ends the server.

}  // namespace

struct YardstickServer::Impl {
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::router};
  std::uint16_t port = 0;
  Serve serve;
  std::jthread thread;

  void run() {
    zmq::message_t peer, request;
    while (true) {
      receive(socket, peer);
      receive(socket, request);
      if (request.size() == kStop) return;
      const std::span<const std::byte> answer = serve(bytes_of(request));
      send(socket, std::move(peer), true);
      send(socket, part_of(answer), false);
    }
  }
};

YardstickServer::YardstickServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<YardstickServer>> YardstickServer::start(Serve serve) {
  auto impl = std::make_unique<Impl>();
  impl->serve = std::move(serve);
  impl->socket.set(zmq::sockopt::linger, 0);
  if (zmq_bind(impl->socket.handle(), "tcp://127.0.0.1:*") != 0)
    return Status(ErrorCode::kUnavailable, std::string("127.0.0.1: ") + zmq_strerror(zmq_errno()));
  const std::string bound = impl->socket.get(zmq::sockopt::last_endpoint);
  impl->port = static_cast<std::uint16_t>(std::stoul(bound.substr(bound.rfind(':') + 1)));
  impl->thread = std::jthread([impl = impl.get()] { impl->run(); });
  return std::unique_ptr<YardstickServer>(new YardstickServer(std::move(impl)));
}

YardstickServer::~YardstickServer() {
  zmq::context_t context{1};
  zmq::socket_t last(context, zmq::socket_type::dealer);
  last.connect("tcp://127.0.0.1:" + std::to_string(impl_->port));
  send(last, zmq::message_t(kStop), false);
  impl_->thread.join();
}

std::uint16_t YardstickServer::port() const noexcept { return impl_->port; }

struct YardstickClient::Impl {
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::dealer};
  zmq::message_t answer;
};

YardstickClient::YardstickClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
YardstickClient::~YardstickClient() = default;

Result<std::unique_ptr<YardstickClient>> YardstickClient::connect(std::uint16_t port) {
  auto impl = std::make_unique<Impl>();
  impl->socket.set(zmq::sockopt::linger, 0);
  if (zmq_connect(impl->socket.handle(), ("tcp://127.0.0.1:" + std::to_string(port)).c_str()) != 0)
    return Status(ErrorCode::kUnavailable, std::string("127.0.0.1: ") + zmq_strerror(zmq_errno()));
  return std::unique_ptr<YardstickClient>(new YardstickClient(std::move(impl)));
}

void YardstickClient::send(std::span<const std::byte> request) {
  transport::send(impl_->socket, part_of(request), false);
}

std::span<const std::byte> YardstickClient::receive() {
  transport::receive(impl_->socket, impl_->answer);
  return bytes_of(impl_->answer);
}

}  // namespace isthmus::transport
