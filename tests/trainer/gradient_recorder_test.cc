#include "trainer/gradient_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/safetensors.h"
#include "tests/support/scratch_folder.h"

namespace isthmus::models {
namespace {

namespace fs = std::filesystem;

// Its gradient is the number of the step, everywhere; the third step fails.
class Counting final : public Workload {
 public:
  std::span<const TensorSpec> table() const noexcept override { return table_; }
  void initial(std::uint64_t seed, std::span<const TensorView> parameters) const override {
    for (const TensorView& view : parameters) std::ranges::fill(view, static_cast<float>(seed));
  }
  std::uint32_t samples() const noexcept override { return 7; }
  Result<float> compute(Step finished, std::span<const ConstTensorView>,
                        std::span<const TensorView> gradients) override {
    if (finished == 2) return Status(ErrorCode::kFailed, "the third step");
    for (const TensorView& view : gradients) std::ranges::fill(view, static_cast<float>(finished + 1));
    return 0.5f;
  }
  Result<Evaluation> evaluate(std::span<const ConstTensorView>) override { return Evaluation{0.25, 2, 3}; }

 private:
  const std::vector<TensorSpec> table_{{"weight", {2, 3}}, {"bias", {3}}};
};

class GradientRecorderTest : public testing::Test {
 protected:
  Result<float> compute(Workload& workload, Step finished) {
    std::vector<float> weight(6), bias(3);
    const std::vector<TensorView> views{weight, bias};
    return workload.compute(finished, {}, views);
  }

  const ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path() / "a" / "b";
};

TEST_F(GradientRecorderTest, WritesTheStepsAskedForAndNoOther) {
  auto recorder = GradientRecorder::create(std::make_unique<Counting>(), folder_, {2, 3, 5});
  ASSERT_TRUE(recorder.ok()) << recorder.status().message();
  for (const Step finished : {0, 1, 2, 3}) {
    const auto loss = compute(**recorder, finished);
    EXPECT_EQ(loss.ok(), finished != 2);
    EXPECT_EQ(loss.ok() ? *loss : 0.5f, 0.5f);
  }
  EXPECT_FALSE(fs::exists(folder_ / "step-1.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "step-3.safetensors"));
  const auto file = core::read_safetensors(folder_ / "step-2.safetensors");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->table, std::vector<TensorSpec>((*recorder)->table().begin(), (*recorder)->table().end()));
  EXPECT_EQ(file->values[0], std::vector<float>(6, 2.0f));
  EXPECT_EQ(file->metadata.at("step"), "2");
}

TEST_F(GradientRecorderTest, IsOtherwiseTheWorkloadInside) {
  auto recorder = GradientRecorder::create(std::make_unique<Counting>(), folder_, {1});
  ASSERT_TRUE(recorder.ok());
  EXPECT_EQ((*recorder)->samples(), 7u);
  std::vector<float> weight(6);
  const std::vector<TensorView> views{weight};
  (*recorder)->initial(9, views);
  EXPECT_EQ(weight[5], 9.0f);
  EXPECT_EQ((*recorder)->evaluate({})->samples, 3u);
}

TEST_F(GradientRecorderTest, WhatCannotBeWrittenIsAnError) {
  const fs::path file = scratch_.write("file", "x");
  EXPECT_EQ(GradientRecorder::create(std::make_unique<Counting>(), file, {1}).status().code(),
            ErrorCode::kInvalidArgument);
  auto recorder = GradientRecorder::create(std::make_unique<Counting>(), folder_, {1});
  ASSERT_TRUE(recorder.ok());
  fs::remove_all(folder_);
  EXPECT_FALSE(compute(**recorder, 0).ok());
}

}  // namespace
}  // namespace isthmus::models
