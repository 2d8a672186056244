// Endpoints on loopback that find each other, for the tests of links.
//
// Threads: the test's.  Memory: its keys' folder.  Errors: a failed start fails the test.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/wan/recorder.h"
#include "tests/wan/temporary_directory.h"
#include "wan/certificates.h"
#include "wan/endpoint.h"

namespace isthmus::wan {

inline constexpr Peer kFrankfurt{0, 0};
inline constexpr Peer kVirginia{1, 0};
inline constexpr Peer kOslo{2, 0};

class EndpointFixture : public testing::Test {
 protected:
  EndpointFixture() {
    config_.job = "mnist";
    for (const char* name : {"frankfurt", "virginia", "oslo"}) {
      core::RegionConfig region;
      region.name = name;
      region.servers.resize(1);
      region.servers[0].wan = region.servers[0].wan_bind = {"127.0.0.1", 0};
      config_.regions.push_back(region);
    }
    config_.links.heartbeat = std::chrono::milliseconds(50);
    config_.security.directory = temporary_.path() + "/keys";
    make_keys(config_.security.directory, config_.job);
  }

  static void make_keys(const std::string& directory, const std::string& job) {
    const auto made = ensure_keys(directory, job, std::vector<std::string>{"frankfurt", "virginia", "oslo"});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
  }

  EndpointOptions options(Peer who, Recorder& recorder,
                          std::vector<std::pair<Peer, std::uint16_t>> dial = {}) {
    EndpointOptions options{config_, who.region, who.server, 1, layout_, {}, {}, {}};
    for (const auto& [peer, port] : dial) options.via.push_back({peer, {"127.0.0.1", port}});
    options.log = [&recorder](const std::string& line) { recorder.log(line); };
    options.timing.after_refusal = std::chrono::milliseconds(20);
    options.timing.backoff_min = std::chrono::milliseconds(1);
    options.timing.backoff_max = std::chrono::milliseconds(50);
    return options;
  }

  static std::unique_ptr<Endpoint> start(EndpointOptions options, Recorder& recorder) {
    Result<std::unique_ptr<Endpoint>> started = Endpoint::start(std::move(options), recorder);
    EXPECT_TRUE(started.ok()) << started.status().to_string();
    return started.ok() ? *std::move(started) : nullptr;
  }

  // For what nobody is told of. False after its deadline.
  template <typename Condition>
  static bool wait_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  // Message `number` about a slice; its bytes follow from both.
  static proto::Message message(std::uint64_t slice, std::uint64_t number, std::size_t bytes) {
    proto::Message made;
    made.kind = proto::Kind::kContribution;
    made.request_id = slice;
    made.meta = std::to_string(number);
    core::Buffer payload(bytes);
    for (std::size_t i = 0; i < bytes; ++i) payload.writable()[i] = pattern(slice, number, i);
    if (bytes > 0) made.payload.push_back(std::move(payload).share(bytes));
    return made;
  }
  static std::byte pattern(std::uint64_t slice, std::uint64_t number, std::size_t i) {
    return static_cast<std::byte>(slice * 31 + number * 7 + i + (i >> 8));
  }
  // True when its bytes are the right ones.
  static bool is_intact(const proto::Message& got) {
    const std::uint64_t number = std::stoull(got.meta);
    std::size_t i = 0;
    for (const core::SharedBytes& piece : got.payload)
      for (std::byte byte : piece.view)
        if (byte != pattern(got.request_id, number, i++)) return false;
    return got.kind == proto::Kind::kContribution;
  }

  TemporaryDirectory temporary_;
  core::JobConfig config_;
  core::Layout layout_ = *core::Layout::create({{"weight", {100, 8}}}, 64);
};

}  // namespace isthmus::wan
