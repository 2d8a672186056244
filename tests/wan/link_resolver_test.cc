#include "wan/link_resolver.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <optional>

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> resolve_into(Resolver& resolver, core::Address address,
                                   std::optional<Result<TcpEndpoints>>& answer) {
  answer.emplace(co_await resolver.resolve(std::move(address)));
}

std::optional<Result<TcpEndpoints>> resolve(const core::Address& address, bool cancel = false) {
  asio::io_context io;
  Resolver resolver(io.get_executor());
  std::optional<Result<TcpEndpoints>> answer;
  asio::co_spawn(io, resolve_into(resolver, address, answer), asio::detached);
  if (cancel) asio::post(io, [&] { resolver.cancel(); });
  io.run();
  return answer;
}

TEST(LinkResolverTest, TakesNumbersAsTheyAre) {
  for (const auto& [host, expected] :
       {std::pair{"127.0.0.1", "127.0.0.1:7200"}, {"[::1]", "[::1]:7200"}, {"::1", "[::1]:7200"}}) {
    const auto answer = resolve({host, 7200});
    ASSERT_TRUE(answer && answer->ok());
    ASSERT_EQ((*answer)->size(), 1u);
    std::ostringstream text;
    text << (*answer)->front();
    EXPECT_EQ(text.str(), expected);
  }
}

TEST(LinkResolverTest, LooksNamesUp) {
  const auto answer = resolve({"localhost", 7200});
  ASSERT_TRUE(answer && answer->ok()) << answer->status().to_string();
  for (const auto& endpoint : **answer) {
    EXPECT_TRUE(endpoint.address().is_loopback());
    EXPECT_EQ(endpoint.port(), 7200);
  }
}

TEST(LinkResolverTest, NamesTheHostThatIsNotThere) {
  const auto answer = resolve({"no such host", 1});
  ASSERT_TRUE(answer.has_value());
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(answer->status().message().find("no such host"), std::string::npos);
}

TEST(LinkResolverTest, CanBeGivenUp) {
  const auto answer = resolve({"localhost", 1}, true);
  ASSERT_TRUE(answer.has_value());  // Which of the two, is a matter of speed.
  EXPECT_TRUE(answer->ok() || answer->status().code() == ErrorCode::kCancelled);
}

}  // namespace
}  // namespace isthmus::wan
