#include "wan/link_resolver.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace isthmus::wan {
namespace {

namespace asio = boost::asio;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

std::string bare_host(const core::Address& address) {
  const std::string& host = address.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') return host.substr(1, host.size() - 2);
  return host;
}

std::optional<TcpEndpoints> numeric(const core::Address& address) {
  boost::system::error_code error;
  const asio::ip::address ip = asio::ip::make_address(bare_host(address), error);
  if (error) return std::nullopt;
  return TcpEndpoints{{ip, address.port}};
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

}  // namespace

Result<TcpEndpoints> lookup(const core::Address& address) {
  if (auto known = numeric(address)) return *std::move(known);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string host = bare_host(address);
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list))
    return Status(ErrorCode::kUnavailable, "host " + host + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
  TcpEndpoints endpoints;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    endpoint.resize(entry->ai_addrlen);
    endpoint.port(address.port);
    endpoints.push_back(endpoint);
  }
  if (endpoints.empty()) return Status(ErrorCode::kUnavailable, "host " + host + ": has no address");
  return endpoints;
}

asio::awaitable<Result<TcpEndpoints>> Resolver::resolve(core::Address address) {
  if (auto known = numeric(address)) co_return *std::move(known);
  const auto answer = std::make_shared<Answer>(1);
  try {
    std::thread([answer, address] {
      Result<TcpEndpoints> found = lookup(address);
      (void)answer->try_push(found);
    }).detach();
  } catch (const std::system_error&) {
    co_return Status(ErrorCode::kResourceExhausted, "host " + address.host + ": no thread to look it up");
  }
  boost::system::error_code ignored;
  wake_.assign(::dup(answer->fd()), ignored);
  co_await wake_.async_wait(asio::posix::stream_descriptor::wait_read, kToken);
  wake_.close(ignored);
  if (std::optional<Result<TcpEndpoints>> found = answer->try_pop()) co_return *std::move(found);
  co_return Status(ErrorCode::kCancelled, "host " + address.host + ": lookup cancelled");
}

void Resolver::cancel() {
  boost::system::error_code ignored;
  if (wake_.is_open()) wake_.cancel(ignored);
}

}  // namespace isthmus::wan
