// Blocking TCP on the loopback for tests. Nothing hangs: every call gives up after kDeadline.
//
// Threads: an object belongs to one thread.
// Memory:  RAII for the file descriptor.
// Errors:  a failed call is false, or short; setting up that fails is a failure of the test.

#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace isthmus::testing {

inline constexpr int kDeadlineSeconds = 60;  // Generous: it only ends a test that hangs.

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class Tcp {
 public:
  Tcp() = default;
  explicit Tcp(int fd) : fd_(fd) {
    const timeval deadline{.tv_sec = kDeadlineSeconds, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof(deadline));
  }
  Tcp(Tcp&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Tcp& operator=(Tcp&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Tcp() { close(); }

  static Tcp connect(std::uint16_t port) {
    Tcp socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    if (::connect(socket.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      socket.close();
    return socket;
  }

  bool open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  bool send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Up to `bytes`; fewer when the other side ended (error() is 0) or the connection broke.
  std::vector<std::byte> receive(std::size_t bytes) {
    std::vector<std::byte> all(bytes);
    std::size_t have = 0;
    error_ = 0;
    while (have < bytes) {
      const ssize_t got = ::recv(fd_, all.data() + have, bytes - have, 0);
      if (got < 0) error_ = errno;
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    all.resize(have);
    return all;
  }
  std::vector<std::byte> receive_to_end(std::size_t at_most = 1 << 30) {
    std::vector<std::byte> all;
    for (;;) {
      const auto part = receive(std::min<std::size_t>(at_most - all.size(), 4096));
      all.insert(all.end(), part.begin(), part.end());
      if (part.size() < 4096) return all;
    }
  }
  int error() const { return error_; }  // Of the last receive().

  void end() { ::shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close();
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
  int error_ = 0;
};

// Listens on a free port of the loopback.
class TcpListener {
 public:
  TcpListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.fd(), SOMAXCONN), 0);
    EXPECT_EQ(::getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }
  // Not open() once end() was called.
  Tcp accept() { return Tcp(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC)); }
  // Wakes accept(), from any thread.
  void end() { ::shutdown(socket_.fd(), SHUT_RDWR); }

 private:
  Tcp socket_;
  std::uint16_t port_ = 0;
};

}  // namespace isthmus::testing
