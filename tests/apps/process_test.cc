#include "apps/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace isthmus::apps {
namespace {

using Lines = std::vector<std::string>;

constexpr int kHangMilliseconds = 60'000;  // Only ends a test that hangs.
constexpr auto kHang = std::chrono::milliseconds(kHangMilliseconds);

bool readable(int fd, int milliseconds = kHangMilliseconds) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, milliseconds) == 1;
}

// How it ended, after it has.
Ending end_of(Process& process) {
  EXPECT_TRUE(readable(process.exit_fd()));
  const auto ending = process.ended();
  EXPECT_TRUE(ending);
  return ending.value_or(Ending{-1, -1});
}
Ending end_of(Process&& process) { return end_of(process); }

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() { std::remove(log_.c_str()); }
  ~ProcessTest() override { std::remove(log_.c_str()); }

  Process shell(const std::string& script, int nice = 0) {
    auto process = Process::start({"shell", {"/bin/sh", "-c", script}, log_, nice, false});
    EXPECT_TRUE(process.ok()) << process.status().to_string();
    return std::move(process).value();
  }
  Lines output() const { return last_lines(log_, 100); }
  bool wait_for_output() const {
    const auto deadline = std::chrono::steady_clock::now() + kHang;
    while (output().empty() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return !output().empty();
  }

  std::string log_ = ::testing::TempDir() + "isthmus_process_test_" + std::to_string(getpid()) + ".log";
};

TEST_F(ProcessTest, TellsHowAProcessEnded) {
  EXPECT_TRUE(end_of(shell("true")).ok());
  const Ending failed = end_of(shell("exit 3"));
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.to_string(), "exit code 3");
  const Ending killed = end_of(shell("kill -9 $$"));
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_FALSE(killed.ok());
  EXPECT_EQ(killed.to_string(), "killed by signal 9 (Killed)");
}

TEST_F(ProcessTest, AppendsBothOutputsToTheLog) {
  EXPECT_TRUE(end_of(shell("echo one; echo two >&2")).ok());
  EXPECT_TRUE(end_of(shell("echo three; cat")).ok());  // And has no input to wait for.
  EXPECT_EQ(output(), (Lines{"one", "two", "three"}));
}

TEST_F(ProcessTest, ItsFileDescriptorSaysWhenItEnds) {
  Process process = shell("exec sleep 1000");
  EXPECT_FALSE(readable(process.exit_fd(), 0));
  EXPECT_FALSE(process.ended());
  process.signal(SIGTERM);
  EXPECT_TRUE(readable(process.exit_fd()));
  ASSERT_TRUE(process.ended());
  EXPECT_EQ(process.ended()->signal, SIGTERM);
  process.signal(SIGKILL);  // Of nobody: it has been reaped.
}

TEST_F(ProcessTest, ASignalMayBeAnswered) {
  Process process = shell("trap 'exit 5' TERM; echo ready; while :; do :; done");
  ASSERT_TRUE(wait_for_output());
  process.signal(SIGTERM);
  EXPECT_EQ(end_of(process).exit_code, 5);
}

TEST_F(ProcessTest, AsksAndAnswersThroughPipes) {
  auto process = Process::start({"cat", {"/bin/sh", "-c", "cat; echo err >&2"}, log_, 0, true});
  ASSERT_TRUE(process.ok()) << process.status().to_string();
  ASSERT_EQ(write(process->input_fd(), "hello", 5), 5);
  ASSERT_TRUE(readable(process->output_fd()));
  char answer[16] = {};
  EXPECT_EQ(read(process->output_fd(), answer, sizeof(answer)), 5);
  EXPECT_STREQ(answer, "hello");
  EXPECT_EQ(read(process->output_fd(), answer, sizeof(answer)), -1);  // Nothing, and nobody waits.
  EXPECT_EQ(errno, EAGAIN);
  process->signal(SIGTERM);
  end_of(*process);
}

TEST_F(ProcessTest, MovesWithoutLosingTheProcess) {
  Process first = shell("exec sleep 1000");
  const pid_t pid = first.id();
  Process second = std::move(first);
  EXPECT_EQ(second.id(), pid);
  second = shell("exit 3");  // The one it had is gone.
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(end_of(second).exit_code, 3);
}

TEST_F(ProcessTest, TheDestructorLeavesNothingBehind) {
  pid_t pid = 0;
  {
    Process process = shell("exec sleep 1000");
    pid = process.id();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(ProcessTest, NamesWhatCannotBeStarted) {
  const auto missing = Process::start({"x", {"/no/such/program"}, log_, 0, false});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing.status().message(), "/no/such/program: No such file or directory");
  const auto no_log = Process::start({"x", {"/bin/true"}, "/no/such/folder/log", 0, false});
  ASSERT_FALSE(no_log.ok());
  EXPECT_EQ(no_log.status().message(), "/no/such/folder/log: No such file or directory");
}

TEST_F(ProcessTest, IsNiceOnRequest) {
  EXPECT_TRUE(end_of(shell("nice", 5)).ok());
  EXPECT_EQ(output(), Lines{std::to_string(std::min(19, getpriority(PRIO_PROCESS, 0) + 5))});
}

TEST_F(ProcessTest, InheritsNeitherFilesNorSignalsNorTheGroup) {
  const int forgotten = dup(STDERR_FILENO);  // Without close-on-exec.
  ASSERT_GT(forgotten, STDERR_FILENO);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  sigfillset(&blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  Process process =
      shell("test -e /proc/self/fd/" + std::to_string(forgotten) +
            " && echo open; grep -E 'Sig(Blk|Ign)' /proc/self/status; ps -o pgid= -p $$ | tr -d ' '");
  end_of(process);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::close(forgotten);
  const std::string zeros(16, '0');
  EXPECT_EQ(output(), (Lines{"SigBlk:\t" + zeros, "SigIgn:\t" + zeros, std::to_string(process.id())}));
}

TEST_F(ProcessTest, DiesWithItsParent) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    const auto child = Process::start({"child", {"/bin/sleep", "1000"}, log_, 0, false});
    const pid_t pid = child.ok() ? child->id() : -1;
    [[maybe_unused]] const ssize_t written = write(ends[1], &pid, sizeof(pid));
    for (;;) pause();
  }
  pid_t child = -1;
  ASSERT_EQ(read(ends[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ASSERT_GT(child, 0);
  const int child_fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  ASSERT_GE(child_fd, 0);
  EXPECT_FALSE(readable(child_fd, 0));
  ::kill(parent, SIGKILL);  // No destructor runs.
  EXPECT_TRUE(readable(child_fd));
  ::waitpid(parent, nullptr, 0);
  for (const int fd : {child_fd, ends[0], ends[1]}) ::close(fd);
}

class LastLinesTest : public ::testing::Test {
 protected:
  ~LastLinesTest() override { std::remove(path_.c_str()); }
  Lines tail_of(const std::string& text, std::size_t lines) {
    std::ofstream(path_, std::ios::binary) << text;
    return last_lines(path_, lines);
  }
  std::string path_ = ::testing::TempDir() + "isthmus_last_lines_test_" + std::to_string(getpid()) + ".log";
};

TEST_F(LastLinesTest, GivesTheLastLines) {
  EXPECT_EQ(tail_of("one\ntwo\nthree\n", 2), (Lines{"two", "three"}));
  EXPECT_EQ(tail_of("one\ntwo\nthree\n", 9), (Lines{"one", "two", "three"}));
  EXPECT_EQ(tail_of("one\ntwo, not ended", 1), (Lines{"two, not ended"}));
  EXPECT_EQ(tail_of("\none\n\n", 9), (Lines{"", "one", ""}));
  EXPECT_EQ(tail_of("", 9), Lines{});
  EXPECT_EQ(tail_of("one\n", 0), Lines{});
}

TEST_F(LastLinesTest, ReadsOnlyTheEndOfALargeFile) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(tail_of(text, 2), (Lines{"line 99998", "line 99999"}));
  const Lines all = tail_of(text, 100'000);
  EXPECT_LE(all.size(), 64u * 1024 / 11);
  EXPECT_EQ(all.front().rfind("line ", 0), 0u);  // No half line.
  // One line that is longer than what is read.
  EXPECT_EQ(tail_of(std::string(200'000, 'x'), 5), (Lines{std::string(64 * 1024, 'x')}));
}

TEST_F(LastLinesTest, AFileThatIsNotThereHasNoLines) { EXPECT_EQ(last_lines(path_, 5), Lines{}); }

}  // namespace
}  // namespace isthmus::apps
