#include "trainer/dataset.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>

#include "tests/support/scratch_folder.h"
#include "tests/trainer/idx_bytes.h"

namespace isthmus::models {
namespace {

constexpr std::size_t kPixels = 28 * 28;

class DataSetTest : public ::testing::Test {
 protected:
  DataSetTest() { config_.data.path = folder_.path().string(); }

  // `train` and `t10k` images: image i has pixel j = 10 i + j (mod 256), label i.
  void write_images(const std::string& prefix, std::uint32_t count) {
    std::string pixels, labels;
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < kPixels; ++j) pixels.push_back(static_cast<char>(10 * i + j));
      labels.push_back(static_cast<char>(i));
    }
    write_gzip(folder_ / (prefix + "-images-idx3-ubyte.gz"), idx_bytes({count, 28, 28}, pixels));
    folder_.write(prefix + "-labels-idx1-ubyte", idx_bytes({count}, labels));  // One plain is fine too.
  }

  core::TrainerConfig text_config(const std::string& text, std::uint32_t sequence) {
    core::TrainerConfig config;
    config.data.set = "text";
    config.data.path = folder_.write("text", text).string();
    config.sequence = sequence;
    return config;
  }

  ScratchFolder folder_;
  core::TrainerConfig config_;
};

TEST_F(DataSetTest, ImagesComeNormalisedWithTheirLabels) {
  write_images("train", 3);
  write_images("t10k", 2);
  const Result<DataSet> set = load_dataset(config_);
  ASSERT_TRUE(set.ok()) << set.status().to_string();
  EXPECT_EQ(set->train.size(), 3u);
  EXPECT_EQ(set->held_out.size(), 2u);
  EXPECT_EQ(std::vector(set->train.labels().begin(), set->train.labels().end()),
            (std::vector<std::uint8_t>{0, 1, 2}));

  Batch batch;
  set->train.gather(std::array<std::uint32_t, 2>{2, 0}, batch);
  EXPECT_EQ(batch.samples, 2u);
  EXPECT_EQ(batch.targets, (std::vector<std::int64_t>{2, 0}));
  ASSERT_EQ(batch.pixels.size(), 2 * kPixels);
  EXPECT_TRUE(batch.tokens.empty());
  for (std::size_t j = 0; j < kPixels; ++j) {
    EXPECT_NEAR(batch.pixels[j], (static_cast<double>((20 + j) % 256) / 255 - 0.2860) / 0.3530, 1e-5);
    EXPECT_NEAR(batch.pixels[kPixels + j], (static_cast<double>(j % 256) / 255 - 0.2860) / 0.3530, 1e-5);
  }
}

TEST_F(DataSetTest, AMissingSetNamesItsPathAndTheWayOut) {
  write_images("train", 1);
  const Status status = load_dataset(config_).status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  for (const std::string& part : {(folder_ / "t10k-images-idx3-ubyte.gz").string(),
                                  std::string("dataset-fashion-mnist"), std::string("trainer.data.path")})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST_F(DataSetTest, RefusesImagesThatContradictThemselves) {
  write_images("t10k", 1);
  const auto code_with = [&](const std::string& images, const std::string& labels) {
    folder_.write("train-images-idx3-ubyte", images);
    folder_.write("train-labels-idx1-ubyte", labels);
    return load_dataset(config_).status().code();
  };
  const std::string image = idx_bytes({1, 28, 28}, std::string(kPixels, 'x'));
  EXPECT_EQ(code_with(image, idx_bytes({1}, "\x09")), ErrorCode::kOk);
  EXPECT_EQ(code_with(image, idx_bytes({1}, "\x0a")), ErrorCode::kCorruption);
  EXPECT_EQ(code_with(image, idx_bytes({2}, "\x01\x01")), ErrorCode::kCorruption);
  EXPECT_EQ(code_with(idx_bytes({28, 28}, std::string(kPixels, 'x')), idx_bytes({28}, std::string(28, '\1'))),
            ErrorCode::kCorruption);
  EXPECT_EQ(code_with(idx_bytes({1, 56, 14}, std::string(kPixels, 'x')), idx_bytes({1}, "\x01")),
            ErrorCode::kCorruption);
  EXPECT_EQ(code_with("", idx_bytes({1}, "\x01")), ErrorCode::kCorruption);
}

TEST_F(DataSetTest, TextIsWindowsThatPredictTheNextByte) {
  std::string text(100, '\0');
  std::iota(text.begin(), text.end(), static_cast<char>(100));
  const Result<DataSet> set = load_dataset(text_config(text, 4));
  ASSERT_TRUE(set.ok()) << set.status().to_string();
  EXPECT_EQ(set->train.size(), 22u);    // 90 bytes: 22 windows of 4 and a target for the last.
  EXPECT_EQ(set->held_out.size(), 2u);  // 10 bytes.

  Batch batch;
  set->train.gather(std::array<std::uint32_t, 2>{1, 21}, batch);
  EXPECT_EQ(batch.tokens, (std::vector<std::int64_t>{104, 105, 106, 107, 184, 185, 186, 187}));
  EXPECT_EQ(batch.targets, (std::vector<std::int64_t>{105, 106, 107, 108, 185, 186, 187, 188}));
  EXPECT_TRUE(batch.pixels.empty());
  set->held_out.gather(std::array<std::uint32_t, 1>{0}, batch);
  EXPECT_EQ(batch.tokens, (std::vector<std::int64_t>{190, 191, 192, 193}));

  EXPECT_EQ(set->train.labels().front(), 0);
  EXPECT_EQ(set->train.labels().back(), 9);
}

TEST_F(DataSetTest, TextThatCannotServeSaysWhy) {
  EXPECT_EQ(load_dataset(text_config(std::string(39, 'x'), 4)).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_dataset(text_config("", 1)).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_dataset(text_config("some text", 0)).status().code(), ErrorCode::kInvalidArgument);
  core::TrainerConfig config = text_config("", 4);
  config.data.path = (folder_ / "missing").string();
  EXPECT_EQ(load_dataset(config).status().code(), ErrorCode::kNotFound);
  EXPECT_NE(load_dataset(config).status().message().find(config.data.path), std::string::npos);
  config.data.path = folder_.path().string();  // A folder opens, but cannot be read.
  EXPECT_EQ(load_dataset(config).status().code(), ErrorCode::kInvalidArgument);
  config.data.path.clear();
  EXPECT_EQ(load_dataset(config).status().code(), ErrorCode::kInvalidArgument);
  config.data.set = "imagenet";
  EXPECT_EQ(load_dataset(config).status().code(), ErrorCode::kInvalidArgument);
}

// The real set, where it is installed: 60000 and 10000 images, each class equally often, and the pixel
// mean and deviation that the normalisation stands for.
TEST_F(DataSetTest, TheInstalledFashionMnistIsAsItsAuthorsSay) {
  config_.data.path.clear();
  const Result<DataSet> set = load_dataset(config_);
  if (set.status().code() == ErrorCode::kNotFound) GTEST_SKIP() << set.status().to_string();
  ASSERT_TRUE(set.ok()) << set.status().to_string();
  EXPECT_EQ(set->train.size(), 60000u);
  EXPECT_EQ(set->held_out.size(), 10000u);
  std::array<int, 10> count{};
  for (std::uint8_t label : set->train.labels()) ++count.at(label);
  for (int n : count) EXPECT_EQ(n, 6000);

  std::vector<std::uint32_t> numbers(6000);
  std::iota(numbers.begin(), numbers.end(), 0u);
  Batch batch;
  set->train.gather(numbers, batch);
  double sum = 0, squares = 0;
  for (float value : batch.pixels) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / static_cast<double>(batch.pixels.size()), 0.0, 0.02);
  EXPECT_NEAR(squares / static_cast<double>(batch.pixels.size()), 1.0, 0.02);
}

}  // namespace
}  // namespace isthmus::models
