// Jobs and layouts as small as the server's tests need them.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/job_config.h"
#include "core/layout.h"

namespace isthmus::server {

// `shards[r]`: the shards of each server of region r, named "r<r>". One worker a region, plain SGD with a
// rate of 1, everything lossless: what arrives can be foretold.
inline core::JobConfig small_job(const std::vector<std::vector<std::uint32_t>>& shards) {
  core::JobConfig config;
  config.job = "small";
  for (const auto& servers : shards) {
    core::RegionConfig region;
    region.name = "r" + std::to_string(config.regions.size());
    for (const std::uint32_t count : servers) {
      core::ServerConfig server;
      server.lan = server.lan_bind = server.wan = server.wan_bind = {"127.0.0.1", 0};
      server.shards = count;
      region.servers.push_back(server);
    }
    config.regions.push_back(region);
  }
  config.optimizer.learning_rate = 1.0f;
  config.sync.every_steps = 1;
  config.compression.wan.kind = core::CodecKind::kFp32;
  config.security.plaintext = true;
  config.slice_elements = 4;
  return config;
}

// Tensors "t0", "t1", ... of these sizes.
inline core::Layout layout_of(const std::vector<std::uint64_t>& elements, std::uint64_t slice_elements = 4) {
  std::vector<TensorSpec> tensors;
  for (const std::uint64_t size : elements) tensors.push_back({"t" + std::to_string(tensors.size()), {size}});
  auto layout = core::Layout::create(std::move(tensors), slice_elements);
  EXPECT_TRUE(layout.ok());
  return *std::move(layout);
}

}  // namespace isthmus::server
