// What a Client must be told.
//
// Threads: a value.  Memory: owns its strings.  Errors: Client::connect() checks it.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isthmus/tensor.h"

namespace isthmus {

// Where one server of the region answers: shard i on `port` + i.
struct ServerEndpoint {
  std::string host;  // DNS name, IPv4 address, or IPv6 address without brackets.
  std::uint16_t port = 0;
  std::uint32_t shards = 1;
};

enum class GradientCodec : std::uint8_t { kFp32, kFp16, kBf16, kInt8, kInt8Stochastic };

// Deep gradient compression (Lin et al., ICLR 2018): this worker sends the largest `keep` of what its
// gradients, with momentum, have gathered; the rest waits. The servers' optimizer must be plain sgd: the
// momentum is here. Pushes then come from one thread at a time.
struct DeepCompressionConfig {
  double keep = 0.01;                         // Share of the elements of a tensor sent in a step. (0, 1]
  float momentum = 0.9f;                      // [0, 1)
  std::uint64_t warmup_steps = 0;             // More is sent at first: keep^(1/5) to keep^(4/5).
  std::uint64_t dense_below_elements = 1024;  // Smaller tensors are sent whole.
};

// A gradient that is longer (Euclidean norm) is scaled down to this length. 0: none is.
struct ClipConfig {
  float norm = 0.0f;         // Of all tensors of one push together,
  float tensor_norm = 0.0f;  // and before that of each tensor.
};

struct ClientConfig {
  std::string job;
  std::string region;
  std::uint32_t worker = 0;  // Index in the region; unique among its living workers.
  // All servers of the region, in the order of the job's config.
  std::vector<ServerEndpoint> servers;
  // All tensors of the job, the same table in every worker of every region.
  std::vector<TensorSpec> tensors;
  std::uint64_t slice_elements = 256 * 1024;
  GradientCodec codec = GradientCodec::kFp32;  // On the LAN, gradients and parameters.
  std::optional<DeepCompressionConfig> deep;   // Instead of `codec` for gradients; 8 bytes an element.
  ClipConfig clip;                             // Not together with `deep`.

  // Every operation ends within this, in success or in an error.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  // Waiting for other workers (a barrier, a staleness bound, a halted link) may take longer than an
  // operation; next_step() and push_pull() keep waiting while the servers answer, at most this long.
  std::chrono::nanoseconds barrier_timeout = std::chrono::minutes(10);

  std::uint64_t max_message_bytes = 256ull << 20;
  // Called on the I/O thread for what a person may want to know; must not block. May be empty.
  std::function<void(std::string_view)> log;
};

}  // namespace isthmus
