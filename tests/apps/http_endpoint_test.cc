#include "apps/http_endpoint.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace isthmus::apps {
namespace {

using std::chrono::milliseconds;

// A connection that says what it likes.
class Caller {
 public:
  explicit Caller(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Caller() { ::close(socket_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void say(const std::string& text) const { (void)::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // All until the other end closes.
  std::string rest() const {
    std::string all;
    char piece[4096];
    for (ssize_t n = 0; (n = ::recv(socket_, piece, sizeof piece, 0)) > 0;)
      all.append(piece, static_cast<std::size_t>(n));
    return all;
  }

 private:
  int socket_;
};

class HttpEndpointTest : public ::testing::Test {
 protected:
  void start(milliseconds deadline = HttpEndpoint::kDeadline) {
    auto endpoint = HttpEndpoint::start(
        {"127.0.0.1", 0},
        [](std::string_view path) -> HttpAnswer {
          if (path != "/there") return {404, "text/plain", "not here\n"};
          return {200, "text/plain; charset=utf-8", "all is well\n"};
        },
        deadline);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status().to_string();
    endpoint_ = *std::move(endpoint);
  }
  std::string ask(const std::string& request) const {
    const Caller caller(endpoint_->port());
    caller.say(request);
    return caller.rest();
  }
  std::unique_ptr<HttpEndpoint> endpoint_;
};

TEST_F(HttpEndpointTest, AnswersWhatIsAsked) {
  start();
  const std::string answer = ask("GET /there?at=all HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("Content-Type: text/plain; charset=utf-8\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("Content-Length: 12\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nall is well\n")) << answer;
  EXPECT_TRUE(ask("GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404 "));
}

TEST_F(HttpEndpointTest, HeadHasNoBody) {
  start();
  const std::string answer = ask("HEAD /there HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("Content-Length: 12\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpEndpointTest, RefusesWhatItIsNotMadeFor) {
  start();
  EXPECT_TRUE(ask("POST /there HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(ask("\x16\x03\x01 no HTTP\r\n\r\n").starts_with("HTTP/1.1 400 "));
  const std::string long_line = "GET /there HTTP/1.1\r\nX: " + std::string(20'000, 'x');
  EXPECT_TRUE(ask(long_line + "\r\n\r\n").starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(ask("GET /there HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 ")) << "it goes on";
}

TEST_F(HttpEndpointTest, WhoeverIsSlowIsDroppedAtTheDeadline) {
  start(milliseconds(100));
  const Caller slow(endpoint_->port());
  slow.say("GET /there HTTP/1.1\r\nX: ");
  EXPECT_EQ(slow.rest(), "");
}

// Connections that say nothing take a place each until their deadline; the next one is closed.
TEST_F(HttpEndpointTest, ConnectionsAreBounded) {
  start(milliseconds(300));
  std::vector<std::unique_ptr<Caller>> idle;
  for (std::size_t i = 0; i < HttpEndpoint::kMostConnections + 4; ++i)
    idle.push_back(std::make_unique<Caller>(endpoint_->port()));
  for (const auto& caller : idle) EXPECT_EQ(caller->rest(), "");
  EXPECT_TRUE(ask("GET /there HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpEndpointTest, EndsWhileSomebodyIsConnected) {
  start();
  const Caller caller(endpoint_->port());
  caller.say("GET /there HTTP/1.1\r\n");
  endpoint_.reset();
  EXPECT_EQ(caller.rest(), "");
}

TEST_F(HttpEndpointTest, AnAddressThatIsTakenIsNamed) {
  start();
  const auto other = HttpEndpoint::start({"127.0.0.1", endpoint_->port()}, {});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("127.0.0.1:" + std::to_string(endpoint_->port())),
            std::string::npos)
      << other.status().to_string();
}

}  // namespace
}  // namespace isthmus::apps
