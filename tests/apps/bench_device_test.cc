// On the emulated device: times mean nothing there, sizes and errors do.

#include "apps/bench_device.h"

#include <gtest/gtest.h>

#include "apps/bench_inputs.h"
#include "apps/bench_measure.h"
#include "compression/codec.h"

namespace isthmus::apps {
namespace {

constexpr std::size_t kElements = 70'000;

class BenchDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fill_input("gaussian", input_).ok());
    auto codecs = choose_codecs({}, std::vector<double>{0.01});
    ASSERT_TRUE(codecs.ok());
    codecs_ = *std::move(codecs);
    ASSERT_TRUE(bench_.open(kElements, codecs_, 2).ok());
    ASSERT_TRUE(bench_.set_input(input_).ok());
  }

  std::vector<float> input_ = std::vector<float>(kElements);
  std::vector<CodecChoice> codecs_;
  DeviceBench bench_;
};

TEST_F(BenchDeviceTest, SizesAndErrorsAreThoseOfTheCpu) {
  EXPECT_EQ(bench_.device(), "emulated");
  for (const CodecChoice& choice : codecs_) {
    SCOPED_TRACE(choice.name);
    const auto row = bench_.measure(choice);
    ASSERT_TRUE(row.ok()) << row.status().message();
    EXPECT_EQ(row->codec, choice.name);
    EXPECT_EQ(row->backend, "cuda");
    EXPECT_GT(row->encode.gb_per_s, 0);
    EXPECT_GT(row->decode.ratio, 0);

    // The last of three records, each with what the one before left.
    const auto codec = compression::make_codec(choice.config);
    compression::CodecState state;
    std::vector<std::byte> record(codec->max_encoded_bytes(kElements));
    std::size_t bytes = 0;
    for (int run = 0; run < 3; ++run) bytes = codec->encode(input_, state, record);
    std::vector<float> decoded(kElements);
    ASSERT_TRUE(codec->decode(std::span(record).first(bytes), decoded).ok());
    EXPECT_DOUBLE_EQ(row->bytes_per_element, static_cast<double>(bytes) / kElements);
    EXPECT_DOUBLE_EQ(row->nmse, nmse_of(input_, decoded));
  }
  EXPECT_GT(bench_.read_gb_per_s(), 0);
}

TEST_F(BenchDeviceTest, EveryPathOfEveryCodec) {
  for (const CodecChoice& choice : codecs_) {
    for (const auto& row : {bench_.measure_delta(choice), bench_.measure_to_host(choice)}) {
      ASSERT_TRUE(row.ok()) << choice.name << ": " << row.status().message();
      EXPECT_EQ(row->codec, choice.name);
      EXPECT_GT(row->pace.ratio, 0);
    }
  }
}

}  // namespace
}  // namespace isthmus::apps
