#include "apps/evaluator_process.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace isthmus::apps {
namespace {

// An evaluator that answers each request by what the shell says.
EvaluatorProcess shell(const std::string& script) {
  auto process = Process::start({.name = "evaluator",
                                 .command = {"/bin/sh", "-c", script},
                                 .log = "/dev/null",
                                 .nice = 0,
                                 .pipe = true});
  EXPECT_TRUE(process.ok()) << process.status().to_string();
  return EvaluatorProcess(*std::move(process));
}

Result<EvaluatorProcess::Answer> wait_for_answer(EvaluatorProcess& evaluator) {
  for (int i = 0; i < 100; ++i) {
    if (auto answer = evaluator.take()) return *std::move(answer);
    pollfd entry{evaluator.process().output_fd(), POLLIN, 0};
    (void)::poll(&entry, 1, 1000);
  }
  return Status(ErrorCode::kTimeout, "no answer");
}

TEST(EvaluatorProcessTest, AnswersOneRequestAfterTheOther) {
  auto evaluator =
      shell(R"(while read what region; do echo '{"step": 7, "accuracy": 0.5, "loss": 1.5}'; done)");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(evaluator.ask("shared frankfurt").ok());
    EXPECT_TRUE(evaluator.busy());
    const auto answer = wait_for_answer(evaluator);
    ASSERT_TRUE(answer.ok()) << answer.status().to_string();
    EXPECT_EQ(answer->step, 7u);
    EXPECT_EQ(answer->accuracy, 0.5);
    EXPECT_EQ(answer->loss, 1.5);
    EXPECT_FALSE(evaluator.busy());
  }
}

TEST(EvaluatorProcessTest, AnErrorIsAStatusAndTheNextRequestIsServed) {
  auto evaluator =
      shell(R"(read a; echo '{"error": "timeout: no such luck"}'; read b; echo '{"difference": 0.25}')");
  ASSERT_TRUE(evaluator.ask("shared frankfurt").ok());
  EXPECT_EQ(wait_for_answer(evaluator).status().message(), "timeout: no such luck");
  ASSERT_TRUE(evaluator.ask("compare").ok());
  const auto answer = wait_for_answer(evaluator);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->difference, 0.25f);
}

TEST(EvaluatorProcessTest, NonsenseIsAStatus) {
  auto evaluator = shell("read a; echo nonsense");
  ASSERT_TRUE(evaluator.ask("compare").ok());
  EXPECT_EQ(wait_for_answer(evaluator).status().code(), ErrorCode::kInternal);
}

TEST(EvaluatorProcessTest, AProcessThatEndsIsAStatus) {
  auto evaluator = shell("read a");
  ASSERT_TRUE(evaluator.ask("compare").ok());
  EXPECT_EQ(wait_for_answer(evaluator).status().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace isthmus::apps
