// The evaluator against a real server.

#include "trainer/evaluator.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/safetensors.h"
#include "tests/support/scratch_folder.h"
#include "tests/trainer/one_region.h"
#include "trainer/synthetic.h"
#include "trainer/worker_loop.h"

namespace isthmus::trainer {
namespace {

TEST(EvaluatorTest, AnswersRequestsAboutAJobThatHasEnded) {
  testing::OneRegion region(1);
  auto workload = models::SyntheticWorkload::create(region.config.trainer, {0, 1}, {});
  ASSERT_TRUE(workload.ok());
  ASSERT_TRUE(
      run_worker(**workload, {region.config, "frankfurt", 0, std::nullopt, {}, [](std::string_view) {}})
          .ok());

  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "a model.safetensors").string();
  Evaluator evaluator(**workload, region.config, [](std::string_view) {});
  std::istringstream requests("final frankfurt " + file +
                              "\nown frankfurt\nshared frankfurt\ncompare\nfinal paris\nsing\n");
  std::ostringstream answers;
  evaluator.serve(requests, answers);

  std::vector<nlohmann::json> lines;
  std::istringstream text(answers.str());
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 6u);
  for (int i = 0; i < 3; ++i) {
    // The synthetic model's loss is its first parameter: ten steps of 1.
    EXPECT_EQ(lines[i].value("loss", 0.0), 10.0) << lines[i];
    EXPECT_EQ(lines[i].value("step", 0), 10) << lines[i];
  }
  EXPECT_EQ(lines[3].value("difference", 1.0), 0.0);
  EXPECT_EQ(lines[3].value("largest", 0.0), 10.0);
  EXPECT_NE(lines[4].value("error", "").find("paris"), std::string::npos);
  EXPECT_NE(lines[5].value("error", "").find("unknown request 'sing'"), std::string::npos);
  const auto saved = core::read_safetensors(file);
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  EXPECT_EQ(saved->values.front().front(), 10.0f);
}

}  // namespace
}  // namespace isthmus::trainer
