#include "apps/evaluator_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace isthmus::apps {
namespace {

// An evaluator that answers each request by what the shell says, and what was said of its restarts.
class EvaluatorProcessTest : public ::testing::Test {
 protected:
  EvaluatorProcess shell(const std::string& script) {
    auto evaluator = EvaluatorProcess::start(
        {.name = "evaluator", .command = {"/bin/sh", "-c", script}, .log = "/dev/null", .nice = 0},
        [this](const std::string& line) { said_ += line + "\n"; });
    EXPECT_TRUE(evaluator.ok()) << evaluator.status().to_string();
    return *std::move(evaluator);
  }
  std::string said_;
};

Result<EvaluatorProcess::Answer> wait_for_answer(EvaluatorProcess& evaluator) {
  for (int i = 0; i < 100; ++i) {
    if (auto answer = evaluator.take()) return *std::move(answer);
    pollfd entry{evaluator.fd(), POLLIN, 0};
    (void)::poll(&entry, 1, 1000);
  }
  return Status(ErrorCode::kTimeout, "no answer");
}

TEST_F(EvaluatorProcessTest, AnswersOneRequestAfterTheOther) {
  auto evaluator =
      shell(R"(while read what region; do echo '{"step": 7, "accuracy": 0.5, "loss": 1.5}'; done)");
  for (int i = 0; i < 2; ++i) {
    evaluator.ask("shared frankfurt");
    EXPECT_TRUE(evaluator.busy());
    const auto answer = wait_for_answer(evaluator);
    ASSERT_TRUE(answer.ok()) << answer.status().to_string();
    EXPECT_EQ(answer->step, 7u);
    EXPECT_EQ(answer->accuracy, 0.5);
    EXPECT_EQ(answer->loss, 1.5);
    EXPECT_FALSE(evaluator.busy());
  }
}

TEST_F(EvaluatorProcessTest, AnErrorIsAStatusAndTheNextRequestIsServed) {
  auto evaluator =
      shell(R"(read a; echo '{"error": "timeout: no such luck"}'; read b; echo '{"difference": 0.25}')");
  evaluator.ask("shared frankfurt");
  EXPECT_EQ(wait_for_answer(evaluator).status().message(), "timeout: no such luck");
  evaluator.ask("compare");
  const auto answer = wait_for_answer(evaluator);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->difference, 0.25f);
}

TEST_F(EvaluatorProcessTest, NonsenseIsAStatus) {
  auto evaluator = shell("read a; echo nonsense");
  evaluator.ask("compare");
  EXPECT_EQ(wait_for_answer(evaluator).status().code(), ErrorCode::kInternal);
}

TEST_F(EvaluatorProcessTest, OneThatDiesIsStartedAgainWithTheRequest) {
  const std::string marker = ::testing::TempDir() + "isthmus_evaluator_" + std::to_string(getpid());
  auto evaluator = shell("read a; if [ -e " + marker + " ]; then echo '{\"step\": 3}'; else : > " + marker +
                         "; kill -9 $$; fi; read b");
  evaluator.ask("shared frankfurt");
  const auto answer = wait_for_answer(evaluator);
  std::remove(marker.c_str());
  ASSERT_TRUE(answer.ok()) << answer.status().to_string();
  EXPECT_EQ(answer->step, 3u);
  EXPECT_NE(said_.find("evaluator ended: killed by signal 9"), std::string::npos) << said_;
  EXPECT_FALSE(evaluator.gone());
}

TEST_F(EvaluatorProcessTest, OneThatDiesEachTimeIsGoneAndSaysWhy) {
  auto evaluator = shell("read a; exit 3");
  evaluator.ask("compare");
  const auto answer = wait_for_answer(evaluator);
  EXPECT_EQ(answer.status().code(), ErrorCode::kFailed);
  EXPECT_NE(answer.status().message().find("exit code 3"), std::string::npos) << answer.status().to_string();
  EXPECT_TRUE(evaluator.gone());
  EXPECT_FALSE(evaluator.busy());
  EXPECT_LT(evaluator.fd(), 0) << "nothing to poll for";
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 3 * EvaluatorProcess::kMaxRestarts) << said_;
}

TEST_F(EvaluatorProcessTest, OneThatDiesWithoutARequestIsGoneInTheEndToo) {
  auto evaluator = shell("exit 3");
  EXPECT_EQ(wait_for_answer(evaluator).status().code(), ErrorCode::kFailed);
}

}  // namespace
}  // namespace isthmus::apps
