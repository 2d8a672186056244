#include "proto/json.h"

#include <gtest/gtest.h>

#include "proto/checkpoint.pb.h"

namespace isthmus::proto {
namespace {

TEST(JsonTest, NamesAreTheSchemas) {
  CheckpointShard shard;
  shard.set_file_bytes(1ull << 60);
  shard.add_members()->set_done(true);
  EXPECT_EQ(
      to_json(shard),
      "{\n \"members\": [\n  {\n   \"done\": true\n  }\n ],\n \"file_bytes\": \"1152921504606846976\"\n}\n");
}

TEST(JsonTest, ReadsWhatItWrote) {
  CheckpointPeer peer;
  peer.set_incarnation(~0ull);
  peer.set_weight(0.1);
  CheckpointPeer read;
  ASSERT_TRUE(from_json(to_json(peer), read).ok());
  EXPECT_EQ(read.incarnation(), ~0ull);
  EXPECT_EQ(read.weight(), 0.1);
}

TEST(JsonTest, WhatIsNoMetaIsCorruption) {
  for (const std::string text : {"", "{", "[]", R"({"shard": "x"})", R"({"shard": -1})", R"({"unknown": 1})",
                                 R"({"shard": 1} {"shard": 2})", "\xff\xfe"}) {
    CheckpointShard shard;
    EXPECT_EQ(from_json(text, shard).code(), ErrorCode::kCorruption) << text;
  }
}

}  // namespace
}  // namespace isthmus::proto
