#include "transport/socket.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <zmq.hpp>

#include "proto/meta.h"

namespace isthmus::transport {
namespace {

using proto::Kind;
using proto::Message;

constexpr std::chrono::seconds kPatience(20);

core::SharedBytes bytes_of(std::string_view text) { return core::copy_bytes(std::as_bytes(std::span(text))); }

std::string text_of(const core::SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.view.data()), bytes.size()};
}

// The next thing a socket gives: a message or a refusal.
Result<Incoming> next(Socket& socket) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    Result<std::optional<Incoming>> got = socket.receive();
    if (!got.ok()) return std::move(got).status();
    if (*got) return std::move(**got);
    Socket* const one[] = {&socket};
    wait(one, -1, deadline - std::chrono::steady_clock::now());
  }
  return Status(ErrorCode::kTimeout, "nothing came");
}

class SocketTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kLimit = 1 << 20;

  std::unique_ptr<Socket> dealer(SocketOptions options = {}) {
    auto made = Socket::dealer(context_, {"127.0.0.1", router_->port()}, options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return std::move(*made);
  }
  static std::unique_ptr<Socket> router(Context& context, SocketOptions options) {
    auto made = Socket::router(context, {"127.0.0.1", 0}, options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return std::move(*made);
  }

  // A port on which nobody listens any more.
  static std::uint16_t free_port() {
    Context own;  // Its end, not the socket's, waits until the port is free again.
    return router(own, {})->port();
  }

  Context context_;
  std::unique_ptr<Socket> router_ = router(context_, {.max_message_bytes = kLimit});
};

TEST_F(SocketTest, AFrameComesAsItWasSentAndSoDoesItsAnswer) {
  auto client = dealer();
  ASSERT_TRUE(client->send({Kind::kPushPull, 7, "meta", {bytes_of("aa"), bytes_of(""), bytes_of("b")}}).ok());
  Result<Incoming> question = next(*router_);
  ASSERT_TRUE(question.ok()) << question.status().to_string();
  EXPECT_FALSE(question->from.empty());
  EXPECT_EQ(question->message.kind, Kind::kPushPull);
  EXPECT_EQ(question->message.request_id, 7u);
  EXPECT_EQ(question->message.meta, "meta");
  ASSERT_EQ(question->message.payload.size(), 2u);  // Empty pieces do not travel.
  EXPECT_EQ(text_of(question->message.payload[0]), "aa");
  EXPECT_EQ(text_of(question->message.payload[1]), "b");

  ASSERT_TRUE(router_->send({Kind::kPushPullReply, 7, "", {bytes_of("reply")}}, question->from).ok());
  Result<Incoming> answer = next(*client);
  ASSERT_TRUE(answer.ok()) << answer.status().to_string();
  EXPECT_TRUE(answer->from.empty());
  EXPECT_EQ(answer->message.kind, Kind::kPushPullReply);
  EXPECT_EQ(text_of(answer->message.payload.at(0)), "reply");

  EXPECT_EQ(client->sent_bytes(), proto::kHeaderBytes + 4 + 3);
  EXPECT_EQ(router_->received_bytes(), client->sent_bytes());
  EXPECT_EQ(client->received_bytes(), proto::kHeaderBytes + 5);
  EXPECT_EQ(router_->sent_bytes(), client->received_bytes());
}

TEST_F(SocketTest, NothingThereIsNotAnError) {
  auto client = dealer();
  for (Socket* socket : {client.get(), router_.get()}) {
    const auto got = socket->receive();
    ASSERT_TRUE(got.ok());
    EXPECT_FALSE(got->has_value());
  }
}

TEST_F(SocketTest, AMessageSentBeforeAnybodyListensArrives) {
  const std::uint16_t port = free_port();
  auto client = Socket::dealer(context_, {"127.0.0.1", port}, {});
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE((*client)->send({Kind::kHello, 1, "early", {}}).ok());
  auto late = Socket::router(context_, {"127.0.0.1", port}, {});
  ASSERT_TRUE(late.ok()) << late.status().to_string();
  const Result<Incoming> got = next(**late);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  EXPECT_EQ(got->message.meta, "early");
}

// The receiver's memory is libzmq's and the sender's is the caller's until libzmq gives it back.
TEST_F(SocketTest, ABigPayloadIsHeldUntilItHasLeftAndNoLonger) {
  constexpr std::size_t kBytes = 64u << 20;
  auto big_router = router(context_, {});
  auto client = Socket::dealer(context_, {"127.0.0.1", big_router->port()}, {});
  std::atomic<bool> freed = false;
  auto* memory = new std::vector<std::byte>(kBytes);
  for (std::size_t i = 0; i < kBytes; i += 4096) (*memory)[i] = static_cast<std::byte>(i >> 12);
  std::shared_ptr<const void> owner(memory, [&freed](std::vector<std::byte>* old) {
    delete old;
    freed = true;
    freed.notify_all();
  });
  core::SharedBytes piece{owner, *memory};
  owner.reset();
  Message message{Kind::kPushPull, 1, "", {}};
  message.payload.push_back(std::move(piece));
  ASSERT_TRUE((*client)->send(std::move(message)).ok());
  EXPECT_FALSE(freed);  // The receiver has not read yet, and 64 MiB do not fit into the kernel's buffers.

  const Result<Incoming> got = next(*big_router);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  ASSERT_EQ(got->message.payload.size(), 1u);
  ASSERT_EQ(got->message.payload[0].size(), kBytes);
  for (std::size_t i = 0; i < kBytes; i += 4096)
    ASSERT_EQ(got->message.payload[0].view[i], static_cast<std::byte>(i >> 12)) << i;
  freed.wait(false);
}

TEST_F(SocketTest, AnswersGoToTheDealerThatAsked) {
  constexpr int kDealers = 50;
  std::vector<std::unique_ptr<Socket>> dealers;
  for (int i = 0; i < kDealers; ++i) {
    dealers.push_back(dealer());
    ASSERT_TRUE(dealers.back()->send({Kind::kHello, static_cast<std::uint64_t>(i), "", {}}).ok());
  }
  std::map<PeerName, std::uint64_t> names;
  for (int i = 0; i < kDealers; ++i) {
    Result<Incoming> got = next(*router_);
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    names[got->from] = got->message.request_id;
    ASSERT_TRUE(router_->send({Kind::kWelcome, got->message.request_id, "", {}}, got->from).ok());
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kDealers));
  for (int i = 0; i < kDealers; ++i) {
    const Result<Incoming> got = next(*dealers[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_EQ(got->message.request_id, static_cast<std::uint64_t>(i));
  }
}

TEST_F(SocketTest, APeerThatIsGoneIsTold) {
  auto client = dealer();
  ASSERT_TRUE(client->send({Kind::kHello, 1, "", {}}).ok());
  const Result<Incoming> got = next(*router_);
  ASSERT_TRUE(got.ok());
  client.reset();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  Status status;
  while (status.ok() && std::chrono::steady_clock::now() < deadline) {
    status = router_->send({Kind::kWelcome, 1, "", {}}, got->from);
    Socket* const one[] = {router_.get()};
    wait(one, -1, std::chrono::milliseconds(1));  // Lets libzmq see the disconnect.
  }
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_EQ(router_->send({Kind::kWelcome, 1, "", {}}, "nobody").code(), ErrorCode::kNotFound);
}

TEST_F(SocketTest, AFullQueueLeavesTheMessageWithTheCaller) {
  const std::uint16_t port = free_port();  // Nobody takes anything off the queue.
  auto client = Socket::dealer(context_, {"127.0.0.1", port}, {.queue_messages = 3, .linger = {}});
  const Message message{Kind::kPushPull, 1, "meta", {bytes_of("piece"), bytes_of("another")}};
  Status status;
  int sent = 0;
  Message copy;
  for (; sent < 100; ++sent) {
    copy = message;
    status = (*client)->send(std::move(copy));
    if (!status.ok()) break;
  }
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(sent, 3);
  ASSERT_EQ(copy.payload.size(), 2u);
  EXPECT_EQ(text_of(copy.payload[1]), "another");

  auto back = Socket::router(context_, {"127.0.0.1", port}, {});
  ASSERT_TRUE(back.ok());
  for (int i = 0; i < 3; ++i) {  // What was taken arrives whole.
    const Result<Incoming> got = next(**back);
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_EQ(got->message.payload_bytes(), 12u);
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!status.ok() && std::chrono::steady_clock::now() < deadline) {
    status = (*client)->send(std::move(copy));
    Socket* const one[] = {client->get()};
    wait(one, -1, std::chrono::milliseconds(1));  // Lets libzmq see that there is room again.
  }
  EXPECT_TRUE(next(**back).ok());
}

TEST_F(SocketTest, AMessageOverTheLimitIsNotSent) {
  auto client = dealer({.max_message_bytes = 8});
  Message message{Kind::kPushPull, 1, "meta", {bytes_of("piece")}};
  EXPECT_EQ(client->send(std::move(message)).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(message.payload.size(), 1u);  // NOLINT(bugprone-use-after-move): still ours.
}

TEST_F(SocketTest, APortInUseIsNamed) {
  const auto second = Socket::router(context_, {"127.0.0.1", router_->port()}, {});
  EXPECT_EQ(second.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(
      second.status().message().find("port " + std::to_string(router_->port()) + " of 127.0.0.1 is in use"),
      std::string::npos)
      << second.status().message();
}

TEST_F(SocketTest, AnAddressThatIsNotOursIsNamed) {
  const auto far = Socket::router(context_, {"192.0.2.1", 7100}, {});
  EXPECT_EQ(far.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(far.status().message().find("192.0.2.1"), std::string::npos) << far.status().message();
}

TEST_F(SocketTest, Ipv6AndNamesWork) {
  for (const char* host : {"::1", "localhost"}) {
    auto there = Socket::router(context_, {host, 0}, {});
    if (!there.ok()) continue;  // A machine without IPv6.
    auto client = Socket::dealer(context_, {host, (*there)->port()}, {});
    ASSERT_TRUE(client.ok()) << client.status().to_string();
    ASSERT_TRUE((*client)->send({Kind::kHello, 1, host, {}}).ok());
    const Result<Incoming> got = next(**there);
    ASSERT_TRUE(got.ok()) << host << ": " << got.status().to_string();
    EXPECT_EQ(got->message.meta, host);
  }
}

TEST_F(SocketTest, WaitReturnsForTheWakeDescriptor) {
  const int fd = ::eventfd(1, EFD_CLOEXEC);
  const auto before = std::chrono::steady_clock::now();
  Socket* const one[] = {router_.get()};
  wait(one, fd, std::chrono::hours(24 * 365 * 200));
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience);
  ::close(fd);
  wait(one, -1, std::chrono::seconds(-1));
}

// ---- Bytes that are not ours ----

class HostileTest : public SocketTest {
 protected:
  void SetUp() override {
    raw_.set(zmq::sockopt::linger, 0);
    raw_.connect("tcp://127.0.0.1:" + std::to_string(router_->port()));
  }
  // One multipart message of these parts.
  void send_raw(const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      raw_.send(zmq::buffer(parts[i]),
                i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  // Header and meta of a good frame that announces `payload` bytes.
  static std::string first_part(std::size_t payload, const std::string& meta = "meta") {
    Message message{Kind::kPushPull, 1, meta, {}};
    if (payload > 0) message.payload.push_back({nullptr, {static_cast<const std::byte*>(nullptr), payload}});
    const auto header = proto::encode_header(message);
    return std::string(reinterpret_cast<const char*>(header.data()), header.size()) + meta;
  }
  void expect_refused(const std::vector<std::string>& parts, ErrorCode code) {
    const std::uint64_t before = router_->received_bytes();
    std::size_t bytes = 0;
    for (const std::string& part : parts) bytes += part.size();
    send_raw(parts);
    EXPECT_EQ(next(*router_).status().code(), code);
    EXPECT_EQ(router_->received_bytes(), before + bytes);
    // The socket goes on: the next frame is read from its start.
    send_raw({first_part(3), "abc"});
    const Result<Incoming> good = next(*router_);
    ASSERT_TRUE(good.ok()) << good.status().to_string();
    EXPECT_EQ(good->message.payload_bytes(), 3u);
  }

  zmq::context_t raw_context_;
  zmq::socket_t raw_{raw_context_, zmq::socket_type::dealer};
};

TEST_F(HostileTest, Garbage) {
  expect_refused({""}, ErrorCode::kProtocol);
  expect_refused({"x"}, ErrorCode::kProtocol);
  expect_refused({std::string(1000, '\xff')}, ErrorCode::kProtocol);
  expect_refused({"", first_part(0)}, ErrorCode::kProtocol);  // A REQ socket's delimiter.
  expect_refused(std::vector<std::string>(1000, "part"), ErrorCode::kProtocol);
}

TEST_F(HostileTest, AHeaderThatDoesNotFitItsPart) {
  expect_refused({first_part(0).substr(0, proto::kHeaderBytes + 3)}, ErrorCode::kProtocol);
  expect_refused({first_part(0) + "more"}, ErrorCode::kProtocol);
  expect_refused({first_part(0).substr(0, proto::kHeaderBytes), "meta"}, ErrorCode::kProtocol);
}

TEST_F(HostileTest, PartsThatAreNotTheAnnouncedPayload) {
  expect_refused({first_part(6), "abc"}, ErrorCode::kProtocol);
  expect_refused({first_part(6), "abc", "defg"}, ErrorCode::kProtocol);
  expect_refused({first_part(6), "abc", "", "def"}, ErrorCode::kProtocol);
  expect_refused({first_part(0), "abc"}, ErrorCode::kProtocol);
  expect_refused({first_part(3)}, ErrorCode::kProtocol);
}

TEST_F(HostileTest, AnAbsurdPayloadLength) {
  expect_refused({first_part(kLimit + 1), "abc"}, ErrorCode::kProtocol);
  std::string absurd = first_part(3);
  absurd[23] = '\x7f';
  expect_refused({absurd, "abc"}, ErrorCode::kProtocol);
}

TEST_F(HostileTest, ADamagedMeta) {
  std::string damaged = first_part(3);
  damaged.back() ^= 1;
  expect_refused({damaged, "abc"}, ErrorCode::kCorruption);
}

// The part is refused by its length prefix, and the connection with it; others are not disturbed.
TEST_F(HostileTest, APartOverTheLimitCutsItsSenderOff) {
  zmq::socket_t monitor(raw_context_, zmq::socket_type::pair);
  ASSERT_EQ(zmq_socket_monitor(raw_.handle(), "inproc://monitor", ZMQ_EVENT_DISCONNECTED), 0);
  monitor.set(zmq::sockopt::rcvtimeo, static_cast<int>(std::chrono::milliseconds(kPatience).count()));
  monitor.connect("inproc://monitor");
  send_raw({first_part(3), "abc"});
  ASSERT_TRUE(next(*router_).ok());
  send_raw({std::string(kLimit + proto::kHeaderBytes + 1, 'x')});
  zmq::message_t event;
  EXPECT_TRUE(monitor.recv(event).has_value());
  auto other = dealer();
  ASSERT_TRUE(other->send({Kind::kHello, 9, "", {}}).ok());
  const Result<Incoming> got = next(*router_);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  EXPECT_EQ(got->message.request_id, 9u);
  EXPECT_LT(router_->received_bytes(), kLimit);
}

}  // namespace
}  // namespace isthmus::transport
