#include "trainer/torch_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/scratch_folder.h"
#include "tests/trainer/idx_bytes.h"
#include "trainer/model_table.h"

namespace isthmus::models {
namespace {

// Image i of class i mod 10: bright where the class says, noise elsewhere.
void write_images(const ScratchFolder& folder, const std::string& prefix, std::uint32_t count) {
  std::string pixels, labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t j = 0; j < 784; ++j)
      pixels.push_back(static_cast<char>(j / 78 == i % 10 ? 255 : (i * 31 + j * 17) % 100));
    labels.push_back(static_cast<char>(i % 10));
  }
  write_gzip(folder / (prefix + "-images-idx3-ubyte.gz"), idx_bytes({count, 28, 28}, pixels));
  write_gzip(folder / (prefix + "-labels-idx1-ubyte.gz"), idx_bytes({count}, labels));
}

class TorchWorkloadTest : public ::testing::Test {
 protected:
  TorchWorkloadTest() {
    write_images(folder_, "train", 200);
    write_images(folder_, "t10k", 50);
    config_.data.path = folder_.path().string();
    config_.batch = 16;
  }

  std::unique_ptr<TorchWorkload> make(WorkerPlace place = {}, std::uint64_t seed = 1) {
    auto workload = TorchWorkload::create(config_, place, seed);
    EXPECT_TRUE(workload.ok()) << workload.status().to_string();
    return workload.ok() ? *std::move(workload) : nullptr;
  }

  // Parameters or gradients of the table.
  static std::vector<std::vector<float>> blank(const Workload& workload) {
    std::vector<std::vector<float>> values;
    for (const TensorSpec& spec : workload.table()) values.emplace_back(spec.elements());
    return values;
  }

  ScratchFolder folder_;
  core::TrainerConfig config_;
};

TEST_F(TorchWorkloadTest, IsWhatTheConfigSays) {
  const auto workload = make();
  const std::vector<TensorSpec> table = *model_table(config_);
  EXPECT_TRUE(std::ranges::equal(workload->table(), table));
  EXPECT_EQ(workload->samples(), 16u);
  auto initial = blank(*workload), expected = blank(*workload);
  workload->initial(9, std::vector<TensorView>(initial.begin(), initial.end()));
  initial_parameters(table, 9, std::vector<TensorView>(expected.begin(), expected.end()));
  EXPECT_EQ(initial, expected);
}

TEST_F(TorchWorkloadTest, ARestartedWorkerComputesTheSameStep) {
  const auto first = make({.worker = 1, .workers = 2}), restarted = make({.worker = 1, .workers = 2});
  const auto other = make({.worker = 0, .workers = 2});
  auto parameters = blank(*first);
  first->initial(1, std::vector<TensorView>(parameters.begin(), parameters.end()));
  const std::vector<ConstTensorView> views(parameters.begin(), parameters.end());
  const auto gradient_of = [&](TorchWorkload& workload, Step finished) {
    auto gradients = blank(workload);
    EXPECT_TRUE(
        workload.compute(finished, views, std::vector<TensorView>(gradients.begin(), gradients.end())).ok());
    return gradients;
  };
  for (Step finished = 0; finished < 10; ++finished) gradient_of(*first, finished);
  EXPECT_EQ(gradient_of(*first, 10), gradient_of(*restarted, 10));
  EXPECT_NE(gradient_of(*first, 10), gradient_of(*first, 11));
  EXPECT_NE(gradient_of(*first, 10), gradient_of(*other, 10));
}

TEST_F(TorchWorkloadTest, TrainsToAnswerTheHeldOutSamples) {
  const auto workload = make();
  auto parameters = blank(*workload), gradients = blank(*workload);
  workload->initial(1, std::vector<TensorView>(parameters.begin(), parameters.end()));
  const std::vector<ConstTensorView> views(parameters.begin(), parameters.end());
  for (Step step = 0; step < 60; ++step) {
    ASSERT_TRUE(
        workload->compute(step, views, std::vector<TensorView>(gradients.begin(), gradients.end())).ok());
    for (std::size_t t = 0; t < parameters.size(); ++t)
      for (std::size_t i = 0; i < parameters[t].size(); ++i) parameters[t][i] -= 0.1f * gradients[t][i];
  }
  const auto evaluation = workload->evaluate(views);
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->samples, 50u);
  EXPECT_GT(evaluation->accuracy, 0.95);
}

TEST_F(TorchWorkloadTest, PassesOnWhatIsWrong) {
  EXPECT_EQ(TorchWorkload::create(config_, {.worker = 2, .workers = 2}, 1).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(TorchWorkload::create(config_, {.worker = 0, .workers = 201}, 1).status().code(),
            ErrorCode::kInvalidArgument);
  config_.batch = 0;
  EXPECT_EQ(TorchWorkload::create(config_, {}, 1).status().code(), ErrorCode::kInvalidArgument);
  config_.batch = 16;
  config_.model = "resnet";
  EXPECT_EQ(TorchWorkload::create(config_, {}, 1).status().code(), ErrorCode::kInvalidArgument);
  config_.model = "mlp";
  config_.data.path = (folder_ / "missing").string();
  EXPECT_EQ(TorchWorkload::create(config_, {}, 1).status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace isthmus::models
