#include "transport/yardstick.h"

#include <gtest/gtest.h>

#include <vector>

#include "transport/socket.h"

namespace isthmus::transport {
namespace {

// What tells thread sanitizers that libzmq is not instrumented is linked with socket.cc.
[[maybe_unused]] const Context linked;

std::vector<std::byte> bytes(std::size_t n, int value) { return std::vector(n, std::byte(value)); }

std::vector<std::byte> copy(std::span<const std::byte> view) { return {view.begin(), view.end()}; }

TEST(YardstickTest, AnswersInTheOrderOfTheRequests) {
  const std::vector<std::byte> two = bytes(100'000, 2), three = bytes(70'000, 3);
  const std::vector<std::byte> eight = bytes(300'000, 8), nine = bytes(9, 9);
  std::vector<std::vector<std::byte>> requests;
  auto server = YardstickServer::start([&](std::span<const std::byte> request) -> std::span<const std::byte> {
    requests.push_back(copy(request));
    return requests.size() == 1 ? two : three;
  });
  ASSERT_TRUE(server.ok()) << server.status().to_string();
  {
    auto client = YardstickClient::connect((*server)->port());
    ASSERT_TRUE(client.ok()) << client.status().to_string();
    (*client)->send(eight);
    (*client)->send(nine);
    EXPECT_EQ(copy((*client)->receive()), two);
    EXPECT_EQ(copy((*client)->receive()), three);
  }
  server->reset();  // Ends by itself; what its thread wrote may be read from here on.
  EXPECT_EQ(requests, (std::vector{eight, nine}));
}

TEST(YardstickTest, AnAnswerMayBeEmpty) {
  auto server = YardstickServer::start([](std::span<const std::byte> request) { return request.first(0); });
  ASSERT_TRUE(server.ok());
  auto client = YardstickClient::connect((*server)->port());
  ASSERT_TRUE(client.ok());
  const std::vector<std::byte> request = bytes(100, 1);
  (*client)->send(request);
  EXPECT_TRUE((*client)->receive().empty());
}

}  // namespace
}  // namespace isthmus::transport
