#include "wan/relay.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/random.h"
#include "tests/support/tcp.h"

namespace isthmus::wan {
namespace {

using core::EmulateConfig;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::Tcp;
using testing::TcpListener;

std::vector<std::byte> noise(std::size_t bytes, std::uint32_t stream) {
  core::Random random(1, {stream, 0, 0});
  std::vector<std::byte> all(bytes);
  for (std::byte& byte : all) byte = static_cast<std::byte>(random.next_u32());
  return all;
}

// Sends back what it gets, on every connection, and ends when the other side does.
class EchoServer {
 public:
  EchoServer() : thread_([this] { run(); }) {}
  ~EchoServer() {
    listener_.end();
    thread_.join();
  }
  std::uint16_t port() const { return listener_.port(); }

 private:
  void run() {
    std::vector<std::thread> sessions;
    for (;;) {
      Tcp client = listener_.accept();
      if (!client.open()) break;
      sessions.emplace_back([client = std::move(client)]() mutable {
        std::vector<std::byte> buffer(16 * 1024);
        for (;;) {
          const ssize_t got = ::recv(client.fd(), buffer.data(), buffer.size(), 0);
          if (got <= 0 || !client.send(std::span(buffer).first(static_cast<std::size_t>(got)))) return;
        }
      });
    }
    for (std::thread& session : sessions) session.join();
  }

  TcpListener listener_;
  std::thread thread_;
};

std::unique_ptr<Relay> start(const EmulateConfig& link, const std::vector<std::uint16_t>& targets,
                             const std::string& host = "127.0.0.1") {
  RelayOptions options{.mappings = {}, .link = link, .log = {}};
  for (const std::uint16_t target : targets) options.mappings.push_back({{"127.0.0.1", 0}, {host, target}});
  auto relay = Relay::start(std::move(options));
  EXPECT_TRUE(relay.ok()) << relay.status().to_string();
  return relay.ok() ? std::move(relay).value() : nullptr;
}

// Waits for what other threads do; the deadline only ends a test that hangs.
template <typename Condition>
bool eventually(Condition condition) {
  const auto deadline = steady_clock::now() + seconds(testing::kDeadlineSeconds);
  while (!condition()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Sends, and reads what comes back while it sends.
std::vector<std::byte> echo(Tcp& socket, const std::vector<std::byte>& bytes) {
  std::thread sender([&] {
    EXPECT_TRUE(socket.send(bytes));
    socket.end();
  });
  auto back = socket.receive(bytes.size());
  sender.join();
  return back;
}

TEST(RelayTest, BringsEveryByteInOrderUnderAllSettings) {
  EchoServer server;
  const std::vector<EmulateConfig> settings = {
      {},
      {.rtt = milliseconds(20), .jitter = milliseconds(3)},
      {.rate_bytes_per_sec = 4'000'000, .rtt = milliseconds(10), .jitter = milliseconds(10)},
      {.rate_bytes_per_sec = 4'000'000, .queue_bytes = 1'000},
      {.rate_bytes_per_sec = 4'000'000, .outages = {{.at = milliseconds(50), .length = milliseconds(50)}}},
  };
  for (const EmulateConfig& link : settings) {
    const auto relay = start(link, {server.port()}, "localhost");
    constexpr std::size_t kBytes = 150'001, kConnections = 4;
    std::vector<std::thread> clients;
    for (std::uint32_t i = 0; i < kConnections; ++i) {
      clients.emplace_back([&, i] {
        Tcp socket = Tcp::connect(relay->ports()[0]);
        const auto sent = noise(kBytes, i);
        EXPECT_EQ(echo(socket, sent), sent);
        EXPECT_TRUE(socket.receive_to_end().empty());  // And nothing after it.
        EXPECT_EQ(socket.error(), 0);
      });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_TRUE(eventually([&] { return relay->stats().open == 0; }));
    const RelayStats stats = relay->stats();
    EXPECT_EQ(stats.there.delivered_bytes, kBytes * kConnections);
    EXPECT_EQ(stats.back.delivered_bytes, kBytes * kConnections);
    EXPECT_EQ(stats.accepted, kConnections);
    EXPECT_EQ(stats.there.queued_bytes + stats.there.line_bytes + stats.there.unwritten_bytes, 0u);
  }
}

TEST(RelayTest, IsNeverFasterThanItsRateAndDelay) {
  TcpListener target;
  // Two addresses and two connections on the first: all share one link.
  const auto relay =
      start({.rate_bytes_per_sec = 500'000, .rtt = milliseconds(60)}, {target.port(), target.port()});
  const auto begin = steady_clock::now();
  std::vector<std::thread> senders;
  for (const std::size_t mapping : {0, 0, 1}) {
    senders.emplace_back([&, mapping] {
      Tcp socket = Tcp::connect(relay->ports()[mapping]);
      EXPECT_TRUE(socket.send(noise(50'000, 0)));
    });
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(target.accept().receive_to_end().size(), 50'000u);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(300 + 30));  // 150,000 bytes, and half a round trip.
  for (std::thread& sender : senders) sender.join();
}

TEST(RelayTest, ARoundTripTakesItsTime) {
  EchoServer server;
  const auto relay = start({.rtt = milliseconds(30)}, {server.port()});
  Tcp socket = Tcp::connect(relay->ports()[0]);
  const auto begin = steady_clock::now();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(socket.send(noise(10, 0)));
    ASSERT_EQ(socket.receive(10).size(), 10u);
  }
  EXPECT_GE(steady_clock::now() - begin, milliseconds(150));
}

TEST(RelayTest, ASideThatHasEndedStillReceives) {
  TcpListener target;
  const auto relay = start({.rtt = milliseconds(4)}, {target.port()});
  Tcp client = Tcp::connect(relay->ports()[0]);
  Tcp server = target.accept();
  ASSERT_TRUE(client.send(noise(1'000, 1)));
  client.end();
  EXPECT_EQ(server.receive_to_end(), noise(1'000, 1));
  EXPECT_EQ(server.error(), 0);
  ASSERT_TRUE(server.send(noise(100'000, 2)));
  server.end();
  EXPECT_EQ(client.receive_to_end(), noise(100'000, 2));
  EXPECT_EQ(client.error(), 0);
  EXPECT_TRUE(eventually([&] { return relay->stats().open == 0; }));
}

TEST(RelayTest, AResetReachesTheOtherSide) {
  TcpListener target;
  const auto relay = start({}, {target.port()});
  Tcp client = Tcp::connect(relay->ports()[0]);
  Tcp server = target.accept();
  client.reset();
  server.receive_to_end();
  EXPECT_EQ(server.error(), ECONNRESET);
}

TEST(RelayTest, ClosesWhoeverWantsATargetThatIsNotThere) {
  std::uint16_t nobody = 0;
  { nobody = TcpListener().port(); }
  const auto relay = start({}, {nobody});
  Tcp client = Tcp::connect(relay->ports()[0]);
  EXPECT_TRUE(client.receive_to_end().empty());
  EXPECT_EQ(client.error(), ECONNRESET);
  EXPECT_EQ(relay->stats().failed, 1u);
  EXPECT_TRUE(eventually([&] { return relay->stats().open == 0; }));
}

TEST(RelayTest, ACutClosesConnectionsUntilItsEnd) {
  EchoServer server;
  const auto begin = steady_clock::now();
  const auto relay = start({.rate_bytes_per_sec = 10'000'000,
                            .outages = {{.after_bytes = 100'000, .length = milliseconds(300), .cut = true}}},
                           {server.port()});
  Tcp first = Tcp::connect(relay->ports()[0]);
  bool all_sent = true;
  std::thread sender([&] { all_sent = first.send(noise(10'000'000, 0)); });
  EXPECT_LE(first.receive_to_end().size(), 100'000u + 64 * 1024);
  sender.join();
  EXPECT_TRUE(!all_sent || first.error() == ECONNRESET);  // A reset is told once: to who sends or who reads.

  // Whoever dials now is turned away, until the link is back.
  std::vector<std::byte> back;
  EXPECT_TRUE(eventually([&] {
    Tcp again = Tcp::connect(relay->ports()[0]);
    back = again.send(noise(1'000, 1)) ? again.receive(1'000) : std::vector<std::byte>();
    return !back.empty();
  }));
  EXPECT_EQ(back, noise(1'000, 1));
  EXPECT_GE(steady_clock::now() - begin, milliseconds(300));
  EXPECT_GE(relay->stats().cut, 2u);
}

TEST(RelayTest, AStallDeliversEverythingAfterwards) {
  EchoServer server;
  const auto begin = steady_clock::now();
  const auto relay = start(
      {.rate_bytes_per_sec = 10'000'000, .outages = {{.after_bytes = 50'000, .length = milliseconds(300)}}},
      {server.port()});
  Tcp socket = Tcp::connect(relay->ports()[0]);
  EXPECT_EQ(echo(socket, noise(200'000, 3)), noise(200'000, 3));
  EXPECT_GE(steady_clock::now() - begin, milliseconds(300));
  EXPECT_EQ(relay->stats().cut, 0u);
}

TEST(RelayTest, StopsReadingWhenTheReceiverDoes) {
  TcpListener target;
  constexpr std::uint64_t kQueue = 64 * 1024;
  const auto relay = start({.queue_bytes = kQueue}, {target.port()});
  Tcp sender = Tcp::connect(relay->ports()[0]);
  Tcp receiver = target.accept();

  constexpr std::size_t kFarTooMuch = 256 << 20;
  const auto block = noise(64 * 1024, 0);
  std::size_t sent = 0;
  for (pollfd ready{sender.fd(), POLLOUT, 0}; sent < kFarTooMuch && ::poll(&ready, 1, 500) == 1;) {
    const ssize_t part = ::send(sender.fd(), block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (part < 0 && errno != EAGAIN) break;
    if (part > 0) sent += static_cast<std::size_t>(part);
  }
  EXPECT_LT(sent, kFarTooMuch);
  EXPECT_TRUE(eventually([&] { return relay->stats().there.unwritten_bytes >= kMaxUnwrittenBytes; }));
  const RelayWayStats there = relay->stats().there;
  EXPECT_LE(there.queued_bytes + there.line_bytes + there.unwritten_bytes,
            kQueue + kMaxUnwrittenBytes + 64 * 1024);

  // It is alone with its trouble.
  Tcp other = Tcp::connect(relay->ports()[0]);
  Tcp other_receiver = target.accept();
  ASSERT_TRUE(other.send(block));
  EXPECT_EQ(other_receiver.receive(block.size()), block);

  // And goes on when it is read again.
  sender.end();
  EXPECT_EQ(receiver.receive_to_end().size(), sent);
}

TEST(RelayTest, SaysWhatIsWrongWithItsOptions) {
  TcpListener taken;
  const RelayMapping good{{"127.0.0.1", 0}, {"127.0.0.1", 1}};
  struct Case {
    RelayOptions options;
    ErrorCode code;
    std::string text;
  };
  const std::vector<Case> cases = {
      {{.mappings = {}, .link = {}, .log = {}}, ErrorCode::kInvalidArgument, "listen"},
      {{.mappings = {good}, .link = {.rtt = seconds(-1)}, .log = {}}, ErrorCode::kInvalidArgument, "rtt"},
      {{.mappings = {good, {{"127.0.0.1", taken.port()}, {"127.0.0.1", 1}}}, .link = {}, .log = {}},
       ErrorCode::kUnavailable,
       "127.0.0.1:" + std::to_string(taken.port())},
      {{.mappings = {{{"no.such.host.invalid", 0}, {"127.0.0.1", 1}}}, .link = {}, .log = {}},
       ErrorCode::kInvalidArgument,
       "no.such.host.invalid"},
      {{.mappings = {good}, .link = {.trace = "no/such/trace"}, .log = {}},
       ErrorCode::kNotFound,
       "no/such/trace"},
  };
  for (const Case& c : cases) {
    const auto relay = Relay::start(c.options);
    ASSERT_FALSE(relay.ok()) << c.text;
    EXPECT_EQ(relay.status().code(), c.code) << relay.status().to_string();
    EXPECT_NE(relay.status().message().find(c.text), std::string::npos) << relay.status().to_string();
  }
}

TEST(RelayTest, StopClosesEverythingAndFreesThePort) {
  TcpListener target;
  auto relay = start({.rtt = seconds(1'000)}, {target.port()});
  const std::uint16_t port = relay->ports()[0];
  Tcp client = Tcp::connect(port);
  Tcp server = target.accept();
  ASSERT_TRUE(client.send(noise(1'000, 0)));  // Never arrives.
  relay->stop();
  client.receive_to_end();
  EXPECT_EQ(client.error(), ECONNRESET);
  EXPECT_TRUE(server.receive_to_end().empty());
  EXPECT_FALSE(Tcp::connect(port).open());
  relay->stop();  // Twice is once.
  EXPECT_EQ(relay->stats().open, 0u);
}

}  // namespace
}  // namespace isthmus::wan
