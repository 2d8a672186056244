#include "apps/stream_read.h"

#include <gtest/gtest.h>

#include <vector>

namespace isthmus::apps {
namespace {

TEST(StreamReadTest, LooksAtEveryWholeWord) {
  std::vector<std::uint64_t> words(1000);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = 0x0123456789abcdefu * (i + 1);
    EXPECT_EQ(stream_read(std::as_bytes(std::span(words))), words[i]) << i;
    words[i] = 0;
  }
}

TEST(StreamReadTest, ReadsFromAnyAddress) {
  std::vector<std::byte> bytes(8 * 40 + 1);
  bytes[1 + 8 * 39] = std::byte{5};
  EXPECT_EQ(stream_read(std::span(bytes).subspan(1)), 5u);
  EXPECT_EQ(stream_read({}), 0u);
}

}  // namespace
}  // namespace isthmus::apps
