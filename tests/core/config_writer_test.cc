#include "core/config_writer.h"

#include <gtest/gtest.h>

#include "core/config_file.h"
#include "core/config_schema.h"
#include "tests/core/config_text.h"

namespace isthmus::core {
namespace {

// Every key away from its default.
constexpr const char* kUnusual = R"(job: "-odd-name"
seed: 9223372036854775807
regions:
  - name: a
    workers: 7
    servers:
      - { lan: "a.example:7100", wan: "[2001:db8::1]:7200", lan_bind: "0.0.0.0:7101", wan_bind: "[::]:7201", shards: 3 }
      - { lan: "b.example:7100", wan: "b.example:7200" }
  - { name: "null", servers: [{ lan: "c.example:7100", wan: "c.example:7200" }] }
commit: { policy: ssp, staleness: 5 steps, lease: 1500ms }
optimizer:
  { kind: adamw, learning_rate: 1e-3, beta1: 0.85, beta2: 0.95, epsilon: 1e-6, weight_decay: 0.3,
    schedule: { kind: linear, steps: 77, final: 12.5% } }
sync:
  { strategy: outer, every: [9 steps, 333ms], weight: equal, deadline: 7s, staleness: { hard: 99 steps, then: continue } }
compression: { lan: bf16, wan: { codec: topk, keep: 0.3% }, dense_below: 77 elements }
links:
  streams: 5
  heartbeat: 111ms
  silence: 3s
  emulate:
    { rate: 12345kbps, rtt: 81ms, jitter: 3ms, queue: 12345B, trace: "a \"b\"\\ #c: d",
      outages: [{ at: 5s, for: 6s, cut: true }, { after: 5MiB, for: 7s }] }
security: { directory: "my keys", plaintext: true }
trainer:
  { model: charlm, data: { set: text, path: "täxt.md", split: dirichlet, alpha: 0.3 }, batch: 3, sequence: 33,
    evaluate_every: 0 steps, stop: { steps: 5, accuracy: 88.8%, time: 5min } }
limits: { message: 22MiB, operation_timeout: 1234ms }
slice: 65536 elements
)";

TEST(ConfigWriterTest, WhatIsWrittenReadsBackToTheSameText) {
  for (const std::string& text :
       {good_config(), std::string(kUnusual),
        good_config() + "optimizer: { kind: momentum, schedule: { kind: step, steps: 3, factor: 0.3 } }\n"}) {
    const Result<JobConfig> config = parse_config(text, "f");
    ASSERT_TRUE(config.ok()) << config.status().message();
    const std::string yaml = to_yaml(*config);
    const Result<JobConfig> again = parse_config(yaml, "written");
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << yaml;
    EXPECT_EQ(to_yaml(*again), yaml);
  }
}

TEST(ConfigWriterTest, DeepCompressionIsKept) {
  const auto first = parse_config(good_config() +
                                      "optimizer: { kind: sgd }\ncompression: { deep: { keep: 2%, "
                                      "momentum: 0.5, warmup: 9 steps } }\n",
                                  "f");
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto config = parse_config(to_yaml(*first), "written");
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_TRUE(config->compression.deep);
  EXPECT_EQ(config->compression.deep->keep, 0.02);
  EXPECT_EQ(config->compression.deep->momentum, 0.5f);
  EXPECT_EQ(config->compression.deep->warmup_steps, 9u);
}

TEST(ConfigWriterTest, NoValueIsLostOnTheWay) {
  const Result<JobConfig> first = parse_config(kUnusual, "f");
  ASSERT_TRUE(first.ok()) << first.status().message();
  const Result<JobConfig> config = parse_config(to_yaml(*first), "written");
  ASSERT_TRUE(config.ok()) << config.status().message();
  using namespace std::chrono_literals;
  EXPECT_EQ(config->job, "-odd-name");
  EXPECT_EQ(config->seed, 9223372036854775807u);
  ASSERT_EQ(config->regions.size(), 2u);
  EXPECT_EQ(config->regions[0].workers, 7u);
  const ServerConfig& server = config->regions[0].servers.at(0);
  EXPECT_EQ(server.wan, (Address{"2001:db8::1", 7200}));
  EXPECT_EQ(server.lan_bind, (Address{"0.0.0.0", 7101}));
  EXPECT_EQ(server.wan_bind, (Address{"::", 7201}));
  EXPECT_EQ(server.shards, 3u);
  EXPECT_EQ(config->regions[0].servers.at(1).lan_bind, (Address{"b.example", 7100}));
  EXPECT_EQ(config->regions[1].name, "null");
  EXPECT_EQ(config->commit.policy, CommitPolicyKind::kSsp);
  EXPECT_EQ(config->commit.staleness, 5u);
  EXPECT_EQ(config->commit.lease, 1500ms);
  EXPECT_EQ(config->optimizer.kind, OptimizerKind::kAdamw);
  EXPECT_EQ(config->optimizer.learning_rate, 1e-3f);
  EXPECT_EQ(config->optimizer.beta1, 0.85f);
  EXPECT_EQ(config->optimizer.beta2, 0.95f);
  EXPECT_EQ(config->optimizer.epsilon, 1e-6f);
  EXPECT_EQ(config->optimizer.weight_decay, 0.3f);
  EXPECT_EQ(config->optimizer.schedule, ScheduleKind::kLinear);
  EXPECT_EQ(config->optimizer.schedule_steps, 77u);
  EXPECT_EQ(config->optimizer.final_fraction, 0.125);
  EXPECT_EQ(config->sync.every_steps, 9u);
  EXPECT_EQ(config->sync.every_time, 333ms);
  EXPECT_EQ(config->sync.weight, RegionWeight::kEqual);
  EXPECT_EQ(config->sync.deadline, 7s);
  EXPECT_EQ(config->sync.hard_staleness, 99u);
  EXPECT_EQ(config->sync.then, HardBoundAction::kContinue);
  EXPECT_EQ(config->compression.lan.kind, CodecKind::kBf16);
  EXPECT_EQ(config->compression.wan.keep, 0.003);
  EXPECT_EQ(config->compression.dense_below_elements, 77u);
  EXPECT_EQ(config->links.streams, 5u);
  ASSERT_TRUE(config->links.emulate.has_value());
  EXPECT_EQ(config->links.emulate->rate_bytes_per_sec, 1'543'125u);
  EXPECT_EQ(config->links.emulate->queue_bytes, 12345u);
  EXPECT_EQ(config->links.emulate->trace, "a \"b\"\\ #c: d");
  ASSERT_EQ(config->links.emulate->outages.size(), 2u);
  EXPECT_EQ(config->links.emulate->outages[1].after_bytes, 5u << 20);
  EXPECT_EQ(config->security.directory, "my keys");
  EXPECT_TRUE(config->security.plaintext);
  EXPECT_EQ(config->trainer.data.path, "täxt.md");
  EXPECT_EQ(config->trainer.data.alpha, 0.3);
  EXPECT_EQ(config->trainer.sequence, 33u);
  EXPECT_EQ(config->trainer.stop.accuracy, 0.888);
  EXPECT_EQ(config->trainer.stop.time, 5min);
  EXPECT_EQ(config->limits.message_bytes, 22u << 20);
  EXPECT_EQ(config->slice_elements, 65536u);
}

TEST(ConfigWriterTest, DefaultsAreWrittenToo) {
  const std::string yaml = to_yaml(*parse_config(good_config(), "f"));
  EXPECT_NE(yaml.find("sync:\n  strategy: outer\n  every: 8 steps\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("  - name: frankfurt\n    workers: 2\n    servers:\n      - lan: \"127.0.0.1:7100\"\n"),
            std::string::npos)
      << yaml;
}

}  // namespace
}  // namespace isthmus::core
