// A worker and a server on this machine, and plain ZeroMQ doing the same beside them: what `isthmus bench
// push-pull` times.
//
// Threads: one, which is the worker's; the server's and both clients' are their own.
// Memory:  a few times the tensors'.
// Errors:  what the server or the client says.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "isthmus/client.h"
#include "isthmus/status.h"
#include "server/server.h"
#include "transport/yardstick.h"

namespace isthmus::apps {

// Tensors of one size, pushed, pulled or both in operations of `together` tensors, `in_flight` of them at
// once.
struct ExchangeShape {
  std::size_t tensors = 64;
  std::size_t elements = 256 * 1024;  // Of each.
  std::size_t together = 1;
  std::size_t in_flight = 16;
  bool push = true;
  bool pull = true;

  std::uint64_t bytes_one_way() const { return tensors * elements * sizeof(float); }
};

// One worker, one server with one shard, plain SGD.
class IsthmusExchange {
 public:
  static Result<std::unique_ptr<IsthmusExchange>> start(const ExchangeShape& shape);
  ~IsthmusExchange();

  // All tensors once; seconds of wall time.
  Result<double> run();
  // What the last run() pulled.
  std::span<const float> parameters() const { return parameters_[(turn_ + 1) % 2]; }

 private:
  explicit IsthmusExchange(const ExchangeShape& shape);
  Gradient gradient(std::uint32_t tensor) const;
  Status exchange();

  const ExchangeShape shape_;
  const std::shared_ptr<std::vector<float>> gradients_;  // Sent from where they are.
  std::vector<float> parameters_[2];  // Pulled into in turn, so that everything travels each time.
  std::size_t turn_ = 0;
  std::unique_ptr<server::Server> server_;
  std::thread thread_;
  std::unique_ptr<Client> client_;
};

// The same numbers over the same sockets: each push is checked, added and applied as the shard does it, each
// pull decoded into a view.
class PlainExchange {
 public:
  static Result<std::unique_ptr<PlainExchange>> start(const ExchangeShape& shape);

  Result<double> run();
  std::span<const float> parameters() const { return parameters_; }

 private:
  explicit PlainExchange(const ExchangeShape& shape);
  std::span<const std::byte> serve(std::span<const std::byte> request);

  const ExchangeShape shape_;
  std::vector<float> gradients_;
  std::vector<float> parameters_;
  std::vector<float> model_;  // At the server.
  std::vector<float> mean_;
  std::size_t next_ = 0;  // The tensor that the next request is about.
  std::unique_ptr<transport::YardstickServer> server_;
  std::unique_ptr<transport::YardstickClient> client_;
};

}  // namespace isthmus::apps
