#include "core/mailbox.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <thread>

namespace isthmus::core {
namespace {

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(MailboxTest, GivesValuesInOrderAndWakesItsReader) {
  Mailbox<int> mailbox(4);
  EXPECT_FALSE(readable(mailbox.fd()));
  for (int value : {1, 2, 3}) EXPECT_TRUE(mailbox.try_push(value));
  EXPECT_TRUE(readable(mailbox.fd()));
  mailbox.clear_wake();
  for (int expected : {1, 2, 3}) EXPECT_EQ(mailbox.try_pop(), expected);
  EXPECT_EQ(mailbox.try_pop(), std::nullopt);
}

TEST(MailboxTest, AFullMailboxLeavesTheValueWithTheWriterAndTellsWhenThereIsSpace) {
  Mailbox<std::unique_ptr<int>> mailbox(2);
  int told = 0;
  mailbox.on_space([&] { ++told; });
  for (int i = 0; i < 2; ++i) {
    auto value = std::make_unique<int>(i);
    EXPECT_TRUE(mailbox.try_push(value));
  }
  auto refused = std::make_unique<int>(2);
  EXPECT_FALSE(mailbox.try_push(refused));
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(told, 0);
  (void)mailbox.try_pop();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(mailbox.try_push(refused));
  (void)mailbox.try_pop();
  EXPECT_EQ(told, 1);  // Nobody was refused in between.
}

TEST(MailboxTest, LosesNothingBetweenThreads) {
  Mailbox<int> mailbox(8);
  constexpr int kEach = 20000;
  const auto write = [&] {
    for (int i = 1; i <= kEach; ++i) {
      int value = i;
      while (!mailbox.try_push(value)) std::this_thread::yield();
    }
  };
  std::jthread first(write);
  std::jthread second(write);
  long long sum = 0;
  for (int got = 0; got < 2 * kEach;) {
    pollfd entry{mailbox.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, 10000), 1);
    mailbox.clear_wake();
    while (auto value = mailbox.try_pop()) {
      sum += *value;
      ++got;
    }
  }
  EXPECT_EQ(sum, 1LL * kEach * (kEach + 1));
}

}  // namespace
}  // namespace isthmus::core
