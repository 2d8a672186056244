#include "apps/http_endpoint.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

namespace isthmus::apps {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kNoExceptions = asio::as_tuple(asio::use_awaitable);
// When nothing can be accepted: no file descriptors, say. Trying at once would take a core.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

class BeastEndpoint final : public HttpEndpoint {
 public:
  BeastEndpoint(Answer answer, std::chrono::milliseconds deadline)
      : answer_(std::move(answer)), deadline_(deadline) {}
  BeastEndpoint(const BeastEndpoint&) = delete;
  BeastEndpoint& operator=(const BeastEndpoint&) = delete;

  ~BeastEndpoint() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status begin(const core::Address& bind) {
    error_code error;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(bind.host, std::to_string(bind.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (!error) acceptor_.open(found.begin()->endpoint().protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(found.begin()->endpoint(), error);
    if (!error) acceptor_.listen(kMostConnections, error);
    if (error) return {ErrorCode::kUnavailable, "http " + bind.to_string() + ": " + error.message()};
    port_ = acceptor_.local_endpoint(error).port();
    asio::co_spawn(io_, accept(), [](const std::exception_ptr&) {});
    try {
      thread_ = std::thread([this] { io_.run(); });
    } catch (const std::system_error& e) {
      return {ErrorCode::kResourceExhausted, std::string("http thread: ") + e.what()};
    }
    return {};
  }

  std::uint16_t port() const noexcept override { return port_; }

 private:
  asio::awaitable<void> accept() {
    asio::steady_timer pause(io_);
    while (true) {
      auto [error, socket] = co_await acceptor_.async_accept(kNoExceptions);
      if (error) {
        pause.expires_after(kAcceptPause);
        (void)co_await pause.async_wait(kNoExceptions);
        continue;
      }
      if (open_ >= kMostConnections) continue;  // Closed at once.
      ++open_;
      asio::co_spawn(io_, serve(beast::tcp_stream(std::move(socket))),
                     [this](const std::exception_ptr&) { --open_; });
    }
  }

  asio::awaitable<void> serve(beast::tcp_stream stream) {
    beast::flat_buffer buffer(kMostHeaderBytes);
    http::request_parser<http::empty_body> parser;
    parser.header_limit(kMostHeaderBytes);
    stream.expires_after(deadline_);
    const auto [error, bytes] = co_await http::async_read_header(stream, buffer, parser, kNoExceptions);
    (void)bytes;
    if (error == http::error::end_of_stream || error == beast::error::timeout) co_return;
    const bool too_long = error == http::error::header_limit || error == http::error::buffer_overflow;
    HttpAnswer answer;
    if (too_long)
      answer = {431, answer.type, "the header is too long\n"};
    else if (error)
      answer = {400, answer.type, "that is no HTTP request\n"};
    else
      answer = answer_to(parser.get());

    const bool head = !error && parser.get().method() == http::verb::head;
    http::response<http::string_body> response(http::int_to_status(answer.status), 11);
    response.set(http::field::content_type, answer.type);
    response.set(http::field::cache_control, "no-store");
    if (answer.status == 405) response.set(http::field::allow, "GET, HEAD");
    response.keep_alive(false);
    response.content_length(answer.body.size());
    if (!head) response.body() = std::move(answer.body);
    stream.expires_after(deadline_);
    (void)co_await http::async_write(stream, response, kNoExceptions);
    error_code ignored;
    (void)stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  HttpAnswer answer_to(const http::request<http::empty_body>& request) const {
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return {405, HttpAnswer().type, "only GET and HEAD\n"};
    const std::string_view target(request.target().data(), request.target().size());
    return answer_(target.substr(0, target.find('?')));
  }

  const Answer answer_;
  const std::chrono::milliseconds deadline_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  std::uint16_t port_ = 0;
  std::size_t open_ = 0;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpEndpoint>> HttpEndpoint::start(const core::Address& bind, Answer answer,
                                                          std::chrono::milliseconds deadline) {
  auto endpoint = std::make_unique<BeastEndpoint>(std::move(answer), deadline);
  ISTHMUS_RETURN_IF_ERROR(endpoint->begin(bind));
  return std::unique_ptr<HttpEndpoint>(std::move(endpoint));
}

}  // namespace isthmus::apps
