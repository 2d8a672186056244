#include "apps/bench_inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/safetensors.h"
#include "tests/support/scratch_folder.h"

namespace isthmus::apps {
namespace {

constexpr std::size_t kElements = 400'000;

std::vector<float> made(const std::string& input, std::size_t elements = kElements) {
  std::vector<float> values(elements);
  const Status status = fill_input(input, values);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

// The mean of |x|^power.
double moment(const std::vector<float>& values, double power) {
  double sum = 0;
  for (const float value : values) sum += std::pow(std::fabs(double{value}), power);
  return sum / static_cast<double>(values.size());
}

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(BenchInputsTest, HaveTheMomentsOfWhatTheyAreCalled) {
  const auto gaussian = made("gaussian");
  EXPECT_NEAR(mean(gaussian), 0.0, 0.01);
  EXPECT_NEAR(moment(gaussian, 2), 1.0, 0.01);
  EXPECT_NEAR(moment(gaussian, 4), 3.0, 0.1);
  const auto laplace = made("laplace");
  EXPECT_NEAR(mean(laplace), 0.0, 0.01);
  EXPECT_NEAR(moment(laplace, 1), 1.0, 0.01);
  EXPECT_NEAR(moment(laplace, 2), 2.0, 0.05);
  // Of a product of independent ones the moments are products: E|x| = sqrt(2/pi) exp(s^2 / 2).
  EXPECT_NEAR(moment(made("heavy"), 1), std::sqrt(2 / M_PI) * std::exp(1.25 * 1.25 / 2), 0.05);
}

TEST(BenchInputsTest, HeavyOnesShareAScaleWithTheirNeighbours) {
  const auto values = made("heavy");
  double same = 0, next = 0;
  std::size_t pairs = 0;
  const auto size = [&](std::size_t i) { return std::log(std::fabs(values[i]) + 1e-30f); };
  for (std::size_t i = 0; i + 8 < values.size(); i += 8, ++pairs) {
    same += std::fabs(size(i) - size(i + 1));
    next += std::fabs(size(i) - size(i + 8));
  }
  EXPECT_LT(same / pairs, 0.8 * next / pairs);
}

TEST(BenchInputsTest, AreTheSameEachTime) {
  for (const std::string_view input : made_inputs())
    EXPECT_EQ(made(std::string(input), 1000), made(std::string(input), 1000));
}

TEST(BenchInputsTest, AFilesTensorsFollowEachOtherAgainAndAgain) {
  const ScratchFolder scratch;
  const auto path = scratch.path() / "step-7.safetensors";
  const std::vector<TensorSpec> table{{"a", {2}}, {"b", {1}}};
  const std::vector<float> a{1, 2}, b{3};
  const std::vector<ConstTensorView> values{a, b};
  ASSERT_TRUE(core::write_safetensors(path, table, values, {}).ok());
  EXPECT_EQ(made(path.string(), 7), (std::vector<float>{1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(input_name(path.string()), "step-7");
  EXPECT_EQ(input_name("laplace"), "laplace");
}

TEST(BenchInputsTest, SaysWhatIsWrong) {
  std::vector<float> out(10);
  const Status unknown = fill_input("laplac", out);
  EXPECT_EQ(unknown.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(unknown.message().find("did you mean 'laplace'"), std::string::npos) << unknown.message();
  EXPECT_EQ(fill_input("./not-there.safetensors", out).code(), ErrorCode::kNotFound);

  const ScratchFolder scratch;
  const auto path = scratch.path() / "nan.safetensors";
  const std::vector<TensorSpec> table{{"a", {1}}};
  const std::vector<float> a{std::numeric_limits<float>::quiet_NaN()};
  const std::vector<ConstTensorView> values{a};
  ASSERT_TRUE(core::write_safetensors(path, table, values, {}).ok());
  EXPECT_EQ(fill_input(path.string(), out).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus::apps
