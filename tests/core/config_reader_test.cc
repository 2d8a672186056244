#include "core/config_reader.h"

#include <gtest/gtest.h>

#include "core/config_file.h"
#include "tests/core/config_text.h"

namespace isthmus::core {
namespace {

using namespace std::chrono_literals;

// What is wrong with the good config (10 lines) when `extra` follows it.
std::string errors_with(const std::string& extra) {
  const Result<JobConfig> config = parse_config(good_config() + extra, "f");
  return config.ok() ? "" : config.status().message();
}

JobConfig read(const std::string& extra) {
  Result<JobConfig> config = parse_config(good_config() + extra, "f");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : JobConfig();
}

TEST(ConfigReaderTest, UnknownKeysAreErrorsWithASuggestion) {
  EXPECT_EQ(errors_with("sync:\n  evry: 8 steps\n"), "f:12: sync.evry: unknown key; did you mean 'every'?");
  EXPECT_EQ(errors_with("security: { tls: true }\n"),
            "f:11: security.tls: unknown key; choose from directory, plaintext");
  EXPECT_EQ(errors_with("comression: { lan: fp32 }\n"),
            "f:11: comression: unknown key; did you mean 'compression'?");
}

TEST(ConfigReaderTest, MissingUnitsAreErrorsThatShowOne) {
  EXPECT_EQ(errors_with("sync: { deadline: 5 }\n"),
            "f:11: sync.deadline: '5' has no unit; write for example 200ms, 5s or 5min");
  EXPECT_EQ(errors_with("sync: { staleness: { hard: 256 } }\n"),
            "f:11: sync.staleness.hard: '256' has no unit; write '256 steps'");
  EXPECT_EQ(errors_with("compression: { wan: { codec: topk, keep: 0.01 } }\n"),
            "f:11: compression.wan.keep: '0.01' has no unit; write a share in percent, for example 1%");
}

TEST(ConfigReaderTest, ValuesOutOfRangeAreErrorsThatSayTheRange) {
  EXPECT_EQ(errors_with("links: { streams: 65 }\n"),
            "f:11: links.streams: '65' is out of range; give 1 to 64");
  EXPECT_EQ(errors_with("commit: { lease: 1ms }\n"),
            "f:11: commit.lease: '1ms' is out of range; give 100ms to 1h");
  EXPECT_EQ(errors_with("optimizer: { momentum: 1, kind: momentum }\n"),
            "f:11: optimizer.momentum: '1' is out of range; give 0 to 0.999999");
  EXPECT_EQ(errors_with("compression: { wan: { codec: topk, keep: 0% } }\n"),
            "f:11: compression.wan.keep: '0%' is out of range; give 0.0001% to 100%");
  EXPECT_EQ(errors_with("sync: { every: 0 steps }\n"),
            "f:11: sync.every: '0 steps' is out of range; give 1 step to 4294967295 steps");
}

TEST(ConfigReaderTest, UnknownChoicesAreErrorsThatListThem) {
  EXPECT_EQ(errors_with("commit: { policy: sssp }\n"),
            "f:11: commit.policy: 'sssp' is none of bsp, ssp, dssp, async; did you mean 'ssp'?");
  EXPECT_EQ(errors_with("optimizer: { kind: lion }\n"),
            "f:11: optimizer.kind: 'lion' is none of sgd, momentum, nesterov, adagrad, adam, adamw, yogi, "
            "lamb; choose one of them");
}

TEST(ConfigReaderTest, WrongTypesAreErrors) {
  EXPECT_EQ(errors_with("seed: [1]\n"), "f:11: seed: takes one value, not a list");
  EXPECT_EQ(errors_with("sync: fast\n"), "f:11: sync: is a value; write it as a map, { key: value, ... }");
  EXPECT_EQ(errors_with("sync:\n"), "f:11: sync: is empty; give its keys or remove the line");
  EXPECT_EQ(errors_with("seed:\n"), "f:11: seed: has no value; give one or remove the line");
  EXPECT_EQ(errors_with("seed: one\n"),
            "f:11: seed: 'one' does not start with a number; write for example 8");
  EXPECT_EQ(errors_with("security: { plaintext: yes }\n"),
            "f:11: security.plaintext: 'yes' is neither true nor false; write one of them");
  EXPECT_EQ(errors_with("links: { emulate: { outages: { at: 5s } } }\n"),
            "f:11: links.emulate.outages: is a map; write it as a list, one '-' an entry");
  EXPECT_EQ(errors_with("links: { emulate: { outages: [5s] } }\n"),
            "f:11: links.emulate.outages[0]: is a value; write it as a map, { key: value, ... }");
}

TEST(ConfigReaderTest, HostileNumbersAreErrors) {
  for (const char* number : {"1e999", "nan", "inf", "-1", "1e-9999", "0", "''", "0x1p3"}) {
    EXPECT_NE(errors_with(std::string("optimizer: { learning_rate: ") + number + " }\n"), "") << number;
  }
  for (const char* number : {"-1", "1.5", "1e3", "18446744073709551616", "nan"}) {
    EXPECT_NE(errors_with(std::string("seed: ") + number + "\n"), "") << number;
  }
  EXPECT_NE(errors_with("links: { emulate: { rate: 99999999999999999999Gbps } }\n"), "");
  EXPECT_NE(errors_with("limits: { message: 16777216TiB }\n"), "");
}

TEST(ConfigReaderTest, KeysWithoutEffectAreErrors) {
  EXPECT_EQ(errors_with("commit: { policy: bsp, staleness: 3 steps }\n"),
            "f:11: commit.staleness: has no effect here, only with policy: ssp or dssp; remove it");
  EXPECT_EQ(errors_with("commit: { policy: ssp, most_staleness: 9 steps }\n"),
            "f:11: commit.most_staleness: has no effect here, only with policy: dssp; remove it");
  EXPECT_EQ(
      errors_with("optimizer: { kind: sgd, beta1: 0.9 }\n"),
      "f:11: optimizer.beta1: has no effect here, only with kind: adam, adamw, yogi or lamb; remove it");
  EXPECT_NE(errors_with("compression: { wan: { codec: int8, keep: 1% } }\n"), "");
  // The mistake is in `kind`; `beta1` is right.
  EXPECT_EQ(errors_with("optimizer: { kind: adm, beta1: 0.9 }\n"),
            "f:11: optimizer.kind: 'adm' is none of sgd, momentum, nesterov, adagrad, adam, adamw, yogi, "
            "lamb; did you mean 'adam'?");
}

TEST(ConfigReaderTest, RequiredKeysAreAskedFor) {
  EXPECT_EQ(
      errors_with("links: { emulate: { outages: [{ at: 5s }] } }\n"),
      "f:11: links.emulate.outages[0].for: missing; say how long the link is out, for example 'for: 5s'");
  EXPECT_EQ(errors_with("optimizer: { schedule: cosine }\n"),
            "f:11: optimizer.schedule.steps: missing; say over how many steps, for example 'steps: 3000'");
}

TEST(ConfigReaderTest, EveryIsStepsOrTimeOrBoth) {
  SyncConfig sync = read("").sync;
  EXPECT_EQ(sync.every_steps, 8u);
  EXPECT_EQ(sync.every_time, 0s);
  sync = read("sync: { every: 1 step }\n").sync;
  EXPECT_EQ(sync.every_steps, 1u);
  sync = read("sync: { every: 200ms }\n").sync;
  EXPECT_EQ(sync.every_steps, 0u);
  EXPECT_EQ(sync.every_time, 200ms);
  sync = read("sync: { every: [8 steps, 200ms] }\n").sync;
  EXPECT_EQ(sync.every_steps, 8u);
  EXPECT_EQ(sync.every_time, 200ms);
  for (const char* bad :
       {"8", "[]", "[8 steps, 9 steps]", "[1s, 2s]", "[[8 steps]]", "[8 steps, 2s, 3s]", "{ a: 1 }"}) {
    EXPECT_NE(errors_with(std::string("sync: { every: ") + bad + " }\n"), "") << bad;
  }
}

TEST(ConfigReaderTest, ACodecMayBeOneWord) {
  const CompressionConfig short_form = read("compression: { lan: fp16, wan: topk }\n").compression;
  EXPECT_EQ(short_form.lan.kind, CodecKind::kFp16);
  EXPECT_EQ(short_form.wan.kind, CodecKind::kTopk);
  EXPECT_EQ(short_form.wan.keep, 0.01);
  EXPECT_EQ(errors_with("compression: { lan: fp33 }\n"),
            "f:11: compression.lan.codec: 'fp33' is none of fp32, fp16, bf16, int8, int4, fp4, sign, topk, "
            "randk; did you mean 'fp32'?");
}

TEST(ConfigReaderTest, ACodecHasTheKeysThatMeanSomethingToIt) {
  const CompressionConfig config = read(
                                       "compression: { lan: { codec: int8, rounding: stochastic },"
                                       " wan: { codec: randk, keep: 5%, values: int8 } }\n")
                                       .compression;
  EXPECT_EQ(config.lan.rounding, Rounding::kStochastic);
  EXPECT_EQ(config.wan.kind, CodecKind::kRandk);
  EXPECT_EQ(config.wan.keep, 0.05);
  EXPECT_EQ(config.wan.values, KeptValues::kInt8);
  EXPECT_TRUE(read("compression: { wan: { codec: int4, rotate: true } }\n").compression.wan.rotate);
  for (const char* wrong : {"int8, rotate: true", "int8, values: fp32", "topk, rounding: nearest",
                            "sign, keep: 1%", "int4, rotate: 3", "topk, values: bf16"}) {
    EXPECT_NE(errors_with(std::string("compression: { wan: { codec: ") + wrong + " } }\n"), "") << wrong;
  }
}

TEST(ConfigReaderTest, ReadsOutages) {
  const EmulateConfig emulate =
      *read(
           "links: { emulate: { rate: 10Mbps, rtt: 80ms, jitter: 5ms, queue: 1MiB, trace: t.txt, outages: "
           "[{ at: 5s, for: 6s, cut: true }, { after: 5MiB, for: 2s }] } }\n")
           .links.emulate;
  EXPECT_EQ(emulate.rate_bytes_per_sec, 1'250'000u);
  EXPECT_EQ(emulate.rtt, 80ms);
  EXPECT_EQ(emulate.jitter, 5ms);
  EXPECT_EQ(emulate.queue_bytes, 1u << 20);
  EXPECT_EQ(emulate.trace, "t.txt");
  ASSERT_EQ(emulate.outages.size(), 2u);
  EXPECT_EQ(emulate.outages[0].at, 5s);
  EXPECT_EQ(emulate.outages[0].length, 6s);
  EXPECT_TRUE(emulate.outages[0].cut);
  EXPECT_EQ(emulate.outages[1].after_bytes, 5u << 20);
  EXPECT_FALSE(emulate.outages[1].cut);
}

TEST(ConfigReaderTest, AnIpv6AddressWithoutQuotesIsExplained) {
  const std::string text = "job: t\nregions: [{ name: a, servers: [{ lan: [::1]:7100 }] }]\n";
  EXPECT_FALSE(parse_config(text, "f").ok());
  const std::string block = "job: t\nregions:\n  - name: a\n    servers:\n      - lan: [\"::1\"]\n";
  EXPECT_NE(parse_config(block, "f")
                .status()
                .message()
                .find("f:5: regions[0].servers[0].lan: is a list; quote an IPv6"),
            std::string::npos);
}

}  // namespace
}  // namespace isthmus::core
