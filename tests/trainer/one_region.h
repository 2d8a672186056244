// A real server of one region in this process, for tests of what speaks to it.
//
// Threads: the server's own, and one that runs it.  Memory: small.  Errors: a test failure.

#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "server/server.h"

namespace isthmus::testing {

// The first of `count` consecutive ports that were free a moment ago.
inline std::uint16_t free_ports(int count) {
  for (std::uint16_t first = static_cast<std::uint16_t>(20000 + getpid() % 20000);;
       first = static_cast<std::uint16_t>(first + count)) {
    bool all = true;
    for (int i = 0; all && i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(first + i));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      all = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      close(fd);
    }
    if (all) return first;
  }
}

class OneRegion {
 public:
  // `adjust` may change anything but the addresses.
  explicit OneRegion(std::uint32_t workers, const std::function<void(core::JobConfig&)>& adjust = {}) {
    config.job = "test";
    config.regions.resize(1);
    config.regions[0].name = "frankfurt";
    config.regions[0].workers = workers;
    core::ServerConfig server;
    server.shards = 2;
    server.lan = {"127.0.0.1", free_ports(2)};
    server.lan_bind = server.lan;
    config.regions[0].servers = {server};
    config.optimizer.kind = core::OptimizerKind::kSgd;
    config.optimizer.learning_rate = 1.0f;
    config.trainer.model = "synthetic";
    config.trainer.synthetic.elements = 100;
    config.trainer.stop.steps = 10;
    if (adjust) adjust(config);
    server::ServerOptions options;
    options.config = config;
    options.hold = true;
    auto started = server::Server::start(std::move(options));
    EXPECT_TRUE(started.ok()) << started.status().to_string();
    server_ = *std::move(started);
    thread_ = std::jthread([this] { (void)server_->run(); });
  }
  ~OneRegion() {
    server_->cancel();
    thread_.join();
  }

  core::JobConfig config;

 private:
  std::unique_ptr<server::Server> server_;
  std::jthread thread_;
};

}  // namespace isthmus::testing
