#include "trainer/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

namespace isthmus::models {
namespace {

class SyntheticTest : public ::testing::Test {
 protected:
  SyntheticTest() {
    config_.model = "synthetic";
    config_.batch = 16;
    config_.synthetic.tensors = 2;
    config_.synthetic.elements = 3;
    config_.synthetic.gradient = -0.5f;
  }

  std::unique_ptr<SyntheticWorkload> make(WorkerPlace place = {}) {
    return std::move(*SyntheticWorkload::create(config_, place, stop_.get_token()));
  }

  Result<float> compute(SyntheticWorkload& workload, Step finished) {
    const std::vector<TensorView> views(gradients_.begin(), gradients_.end());
    const std::vector<ConstTensorView> parameters(parameters_.begin(), parameters_.end());
    return workload.compute(finished, parameters, views);
  }

  core::TrainerConfig config_;
  std::stop_source stop_;
  std::vector<std::vector<float>> parameters_{{4.0f, 5.0f, 6.0f}, {7.0f, 8.0f, 9.0f}};
  std::vector<std::vector<float>> gradients_{2, std::vector<float>(3, 99.0f)};
};

TEST_F(SyntheticTest, DeclaresTheConfiguredTensorsStartingAtZero) {
  const auto workload = make();
  ASSERT_EQ(workload->table().size(), 2u);
  EXPECT_EQ(workload->table()[1], (TensorSpec{"tensor1", {3}}));
  EXPECT_EQ(workload->samples(), 16u);
  const std::vector<TensorView> views(parameters_.begin(), parameters_.end());
  workload->initial(1, views);
  EXPECT_EQ(parameters_, std::vector(2, std::vector<float>(3, 0.0f)));
}

TEST_F(SyntheticTest, ABadConfigIsAnError) {
  config_.synthetic.tensors = 0;
  EXPECT_EQ(SyntheticWorkload::create(config_, {}, {}).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(SyntheticTest, EveryGradientIsTheConfiguredValue) {
  const auto workload = make();
  for (Step finished : {0u, 1u, 1000u}) {
    gradients_[0][1] = 99.0f;
    const Result<float> loss = compute(*workload, finished);
    ASSERT_TRUE(loss.ok());
    EXPECT_EQ(*loss, 4.0f);
    EXPECT_EQ(gradients_, std::vector(2, std::vector<float>(3, -0.5f)));
  }
}

TEST_F(SyntheticTest, OnlyTheJobsFirstWorkerIsPoisonedAndOnlyInThatStep) {
  config_.synthetic.nan_at_step = 3;
  for (std::uint32_t worker : {0u, 1u}) {
    const auto workload = make({.worker = worker, .workers = 2});
    for (Step finished = 0; finished < 5; ++finished) {
      ASSERT_TRUE(compute(*workload, finished).ok());
      for (const auto& gradient : gradients_)
        for (float value : gradient) EXPECT_EQ(std::isnan(value), worker == 0 && finished == 2);
    }
  }
}

TEST_F(SyntheticTest, AStepTakesAtLeastItsTime) {
  config_.synthetic.step_time = std::chrono::milliseconds(30);
  for (bool spin : {false, true}) {
    config_.synthetic.spin = spin;
    const auto workload = make();
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(compute(*workload, 0).ok());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, config_.synthetic.step_time);
  }
}

TEST_F(SyntheticTest, AStopEndsALongStep) {
  config_.synthetic.step_time = std::chrono::hours(1);
  stop_.request_stop();
  for (bool spin : {false, true}) {
    config_.synthetic.spin = spin;
    EXPECT_EQ(compute(*make(), 0).status().code(), ErrorCode::kCancelled);
  }
}

TEST_F(SyntheticTest, EvaluationShowsTheFirstParameter) {
  const std::vector<ConstTensorView> parameters(parameters_.begin(), parameters_.end());
  const auto evaluation = make()->evaluate(parameters);
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->loss, 4.0);
  EXPECT_EQ(evaluation->accuracy, 0.0);
  EXPECT_EQ(evaluation->samples, 0u);
}

}  // namespace
}  // namespace isthmus::models
