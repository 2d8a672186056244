#include "apps/bench_report.h"

#include <gtest/gtest.h>

namespace isthmus::apps {
namespace {

BenchReport report() {
  return {12.5,
          {{"int8", "cpu", "gaussian", {9.25, 0.74}, {10, 0.8}, 1.015625, 4.8e-5}},
          {{"select 1%", "", "cpu", "laplace", {8.5, 0.68}}}};
}

TEST(BenchReportTest, JsonHasTheAgreedKeysInTheirOrder) {
  EXPECT_EQ(bench_json(report()),
            R"({"schema":1,"read_gb_per_s":12.5,"rows":[{"codec":"int8","backend":"cpu","input":"gaussian",)"
            R"("encode_gb_per_s":9.25,"encode_ratio":0.74,"decode_gb_per_s":10.0,"decode_ratio":0.8,)"
            R"("bytes_per_element":1.016,"nmse":4.8e-05}],)"
            R"("paths":[{"path":"select 1%","codec":"","backend":"cpu","input":"laplace","gb_per_s":8.5,)"
            R"("ratio":0.68}]})");
}

TEST(BenchReportTest, ADeviceHasALimitOfItsOwn) {
  BenchReport with_device = report();
  EXPECT_EQ(bench_text(with_device).find("device"), std::string::npos);
  with_device.device = "a device";
  with_device.device_read_gb_per_s = 4000;
  EXPECT_NE(bench_json(with_device).find(R"("device":{"name":"a device","read_gb_per_s":4000.0},"rows")"),
            std::string::npos);
  EXPECT_NE(bench_text(with_device).find("a device: streaming read of its memory 4000.00 GB/s"),
            std::string::npos);
}

TEST(BenchReportTest, TextHasARowForEach) {
  const std::string text = bench_text(report());
  EXPECT_NE(text.find("streaming read: 12.50 GB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("int8   cpu      gaussian    9.25    0.74   10.00    0.80  1.0156  4.80e-05\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("select 1%         cpu      laplace  8.50    0.68\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace isthmus::apps
