#include "apps/bench_measure.h"

#include <gtest/gtest.h>

#include <chrono>

#include "apps/bench_inputs.h"

namespace isthmus::apps {
namespace {

constexpr std::size_t kElements = 100'000;

class BenchMeasureTest : public testing::Test {
 protected:
  BenchMeasureTest() {
    const Status status = fill_input("gaussian", bench_.input());
    EXPECT_TRUE(status.ok()) << status.message();
  }

  const std::vector<CodecChoice> codecs_ = *choose_codecs({}, {});
  const BackendChoice cpu_ = choose_backends({})->front();
  CodecBench bench_{kElements, codecs_};
  BenchTimer timer_{bench_.input(), 1, core::Duration{0}};
};

TEST_F(BenchMeasureTest, SizeAndErrorAreTheCodecs) {
  // The errors: docs/compression.md's references, in double precision, for the standard normal.
  const struct {
    CodecChoice codec;
    double bytes, nmse;
  } cases[] = {
      {{"fp32", {core::CodecKind::kFp32}}, 4.0, 0.0},
      {{"fp16", {core::CodecKind::kFp16}}, 2.0, 4.3e-8},
      {{"int8", {core::CodecKind::kInt8}}, 1.0 + 4.0 / 256, 4.8e-5},
  };
  for (const auto& expected : cases) {
    const auto row = bench_.measure(expected.codec, cpu_, timer_);
    ASSERT_TRUE(row.ok()) << row.status().message();
    EXPECT_EQ(row->codec, expected.codec.name);
    EXPECT_EQ(row->backend, "cpu");
    EXPECT_NEAR(row->bytes_per_element, expected.bytes, 1e-4);
    EXPECT_NEAR(row->nmse, expected.nmse, 0.05 * expected.nmse);
    EXPECT_GT(row->encode.gb_per_s, 0);
    EXPECT_GT(row->decode.ratio, 0);
  }
}

TEST_F(BenchMeasureTest, EveryCodecOfTheConfigCanBeMeasured) {
  for (const CodecChoice& codec : codecs_) {
    const auto row = bench_.measure(codec, cpu_, timer_);
    ASSERT_TRUE(row.ok()) << row.status().message();
    EXPECT_LT(row->nmse, 1.0) << codec.name;
    const auto delta = bench_.measure_delta(codec, cpu_, timer_);
    ASSERT_TRUE(delta.ok()) << delta.status().message();
    EXPECT_EQ(delta->codec, codec.name);
    EXPECT_GT(delta->pace.gb_per_s, 0);
  }
}

TEST_F(BenchMeasureTest, TheStepsAroundThem) {
  EXPECT_EQ(bench_.measure_select(0.01, cpu_, timer_).path, "select 1%");
  EXPECT_EQ(bench_.measure_estimate(0.01, timer_).path, "estimate 1%");
  EXPECT_EQ(bench_.measure_nth_element(0.01, timer_).path, "std::nth_element 1%");
  EXPECT_GT(bench_.measure_copy(timer_).pace.gb_per_s, 0);
}

}  // namespace
}  // namespace isthmus::apps
