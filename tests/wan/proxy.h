// A TCP proxy on loopback that can lose connections or stand still: a network that fails on command.
//
// Threads: one of its own; every method from the test's.
// Memory:  one buffer a direction.
// Errors:  a connection that fails on one side ends on the other.

#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace isthmus::wan {

class Proxy {
 public:
  using Tcp = boost::asio::ip::tcp;

  explicit Proxy(std::uint16_t target)
      : target_(boost::asio::ip::address_v4::loopback(), target),
        acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}),
        port_(acceptor_.local_endpoint().port()) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Proxy() {
    io_.stop();
    thread_.join();
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::uint16_t port() const { return port_; }
  // Later connections go there.
  void set_target(std::uint16_t port) {
    on_thread([&] { target_.port(port); });
  }
  // Closes the connections that there are.
  void cut() {
    on_thread([&] {
      for (const auto& pair : std::exchange(pairs_, {})) pair->close();
    });
  }
  void cut_the_oldest() {
    on_thread([&] {
      pairs_.front()->close();
      pairs_.erase(pairs_.begin());
    });
  }
  // Nothing passes from now on, in connections old and new; nor are they closed. thaw() is for new ones.
  void freeze() { frozen_ = true; }
  void thaw() { frozen_ = false; }
  std::uint64_t to_target_bytes() const { return bytes_[0]; }
  std::uint64_t from_target_bytes() const { return bytes_[1]; }

 private:
  struct Pair {
    Tcp::socket sides[2];
    std::array<char, 65536> buffers[2];
    void close() {
      boost::system::error_code ignored;
      for (Tcp::socket& side : sides) side.close(ignored);
    }
  };

  template <typename Action>
  void on_thread(Action action) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      action();
      done.set_value();
    });
    done.get_future().wait();
  }
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Tcp::socket socket) {
      if (error) return;
      auto pair = std::make_shared<Pair>(Pair{{std::move(socket), Tcp::socket(io_)}, {}});
      pair->sides[1].connect(target_, error);
      if (error) {
        pair->close();
      } else {
        pairs_.push_back(pair);
        pump(pair, 0);
        pump(pair, 1);
      }
      accept();
    });
  }
  void pump(const std::shared_ptr<Pair>& pair, int from) {
    pair->sides[from].async_read_some(
        boost::asio::buffer(pair->buffers[from]),
        [this, pair, from](boost::system::error_code error, std::size_t bytes) {
          if (frozen_) return;
          if (error) return pair->close();
          bytes_[from] += bytes;
          boost::asio::async_write(pair->sides[1 - from], boost::asio::buffer(pair->buffers[from], bytes),
                                   [this, pair, from](boost::system::error_code failed, std::size_t) {
                                     if (failed) return pair->close();
                                     pump(pair, from);
                                   });
        });
  }

  boost::asio::io_context io_{1};
  Tcp::endpoint target_;
  Tcp::acceptor acceptor_;
  std::uint16_t port_;
  std::vector<std::shared_ptr<Pair>> pairs_;
  std::atomic<bool> frozen_{false};
  std::atomic<std::uint64_t> bytes_[2]{};
  std::thread thread_;
};

}  // namespace isthmus::wan
