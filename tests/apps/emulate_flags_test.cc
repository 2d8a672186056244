#include "apps/emulate_flags.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace isthmus::apps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(EmulateFlagsTest, AListenAddressMayLeaveThePortOpen) {
  EXPECT_EQ(*parse_listen_address("127.0.0.1:7300"), (core::Address{"127.0.0.1", 7300}));
  EXPECT_EQ(*parse_listen_address("localhost:0"), (core::Address{"localhost", 0}));
  EXPECT_EQ(*parse_listen_address("[::1]:0"), (core::Address{"::1", 0}));
  for (const char* text : {"", ":0", "127.0.0.1", "127.0.0.1:70000", "::1:0"})
    EXPECT_EQ(parse_listen_address(text).status().code(), ErrorCode::kInvalidArgument) << text;
}

TEST(EmulateFlagsTest, AMappingIsTwoAddresses) {
  const auto mapping = parse_mapping("[::1]:7300=virginia.example:7200");
  ASSERT_TRUE(mapping.ok()) << mapping.status().to_string();
  EXPECT_EQ(mapping->listen, (core::Address{"::1", 7300}));
  EXPECT_EQ(mapping->target, (core::Address{"virginia.example", 7200}));
  for (const char* text : {"", "=", "127.0.0.1:1", "127.0.0.1:1=", "=127.0.0.1:1", "127.0.0.1:1=127.0.0.1:0"})
    EXPECT_EQ(parse_mapping(text).status().code(), ErrorCode::kInvalidArgument) << text;
}

TEST(EmulateFlagsTest, AnOutageBeginsAtATimeOrAfterBytes) {
  auto outage = parse_outage("at=5s,for=250ms");
  ASSERT_TRUE(outage.ok()) << outage.status().to_string();
  EXPECT_EQ(outage->at, seconds(5));
  EXPECT_EQ(outage->length, milliseconds(250));
  EXPECT_FALSE(outage->cut);

  outage = parse_outage("cut,for=3s,after=2MiB");
  ASSERT_TRUE(outage.ok()) << outage.status().to_string();
  EXPECT_EQ(outage->after_bytes, 2u << 20);
  EXPECT_EQ(outage->length, seconds(3));
  EXPECT_TRUE(outage->cut);

  for (const char* text :
       {"", "at=5s", "for=5s", "at=5s,after=1B,for=1s", "at=5s,at=6s,for=1s", "at=5,for=1s",
        "after=0B,for=1s", "at=5s,for=1s,", "at=5s,for=1s,cut=yes", "at,for=1s"})
    EXPECT_EQ(parse_outage(text).status().code(), ErrorCode::kInvalidArgument) << text;
}

TEST(EmulateFlagsTest, DescribesTheWholeLink) {
  EXPECT_EQ(describe({.rate_bytes_per_sec = 1'250'000,
                      .rtt = milliseconds(80),
                      .jitter = milliseconds(5),
                      .outages = {{.at = seconds(5), .length = seconds(2), .cut = true},
                                  {.after_bytes = 1 << 20, .length = seconds(1)}},
                      .trace = "mobile.txt"}),
            "10Mbps each way (then as in mobile.txt), 80ms round trip and up to 5ms of jitter each way, "
            "queue 1MiB; "
            "cut at 5s for 2s; stalled after 1MiB for 1s");
  EXPECT_EQ(describe({}), "no limit to the rate, 0s round trip, queue 1MiB");
}

}  // namespace
}  // namespace isthmus::apps
