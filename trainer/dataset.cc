#include "trainer/dataset.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "core/check.h"
#include "trainer/idx_file.h"
#include "trainer/model_table.h"

namespace isthmus::models {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxTextBytes = 1ull << 30;

// Pixels become (byte / 255 - mean) / deviation: these two are of the training images.
constexpr float kPixelMean = 0.2860f, kPixelDeviation = 0.3530f;

constexpr std::array<float, 256> pixel_values() {
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = (static_cast<float>(i) / 255.0f - kPixelMean) / kPixelDeviation;
  return values;
}

// Reads `name`.gz, or `name` itself where there is no such file.
Result<IdxArray> read_part(const fs::path& folder, const std::string& name) {
  Result<IdxArray> packed = read_idx(folder / (name + ".gz"));
  if (packed.ok() || packed.status().code() != ErrorCode::kNotFound) return packed;
  Result<IdxArray> plain = read_idx(folder / name);
  if (plain.ok() || plain.status().code() != ErrorCode::kNotFound) return plain;
  return packed;
}

Result<Samples> read_images(const fs::path& folder, const std::string& prefix) {
  Result<IdxArray> images = read_part(folder, prefix + "-images-idx3-ubyte");
  if (!images.ok()) return images.status();
  Result<IdxArray> labels = read_part(folder, prefix + "-labels-idx1-ubyte");
  if (!labels.ok()) return labels.status();

  const std::string where = (folder / prefix).string() + "-*: ";
  const std::vector<std::uint32_t>& shape = images->dimensions;
  if (shape.size() != 3 || shape[1] != kImageRows || shape[2] != kImageColumns)
    return Status(ErrorCode::kCorruption, where + "the images are not 28 x 28");
  if (labels->dimensions.size() != 1 || labels->dimensions[0] != shape[0])
    return Status(ErrorCode::kCorruption, where + "not one label for each image");
  if (*std::max_element(labels->bytes.begin(), labels->bytes.end()) >= kImageClasses)
    return Status(ErrorCode::kCorruption, where + "a label is not one of 0 to 9");
  return Samples::images(std::move(images->bytes), std::move(labels->bytes), kImageRows * kImageColumns);
}

Result<DataSet> load_fashion_mnist(const core::DataConfig& config) {
  const fs::path folder = config.path.empty() ? fs::path(kFashionMnistFolder) : fs::path(config.path);
  Result<Samples> train = read_images(folder, "train");
  Result<Samples> held_out = train.ok() ? read_images(folder, "t10k") : train.status();
  if (held_out.ok()) return DataSet{*std::move(train), *std::move(held_out)};
  Status error = std::move(held_out).status();
  if (error.code() != ErrorCode::kNotFound) return error;
  return Status(ErrorCode::kNotFound,
                error.message() +
                    "; install the package dataset-fashion-mnist or set trainer.data.path to the "
                    "folder that holds the data set");
}

Result<std::vector<std::uint8_t>> read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    return Status(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                  path + ": " + std::strerror(errno) + "; set trainer.data.path to a text file");
  constexpr std::size_t kChunk = 1 << 20;
  std::vector<std::uint8_t> bytes;
  for (;;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kChunk);
    const std::size_t got = std::fread(bytes.data() + before, 1, kChunk, file.get());
    bytes.resize(before + got);
    if (std::ferror(file.get()) != 0)
      return Status(ErrorCode::kInvalidArgument, path + ": read: " + std::strerror(errno));
    if (bytes.size() > kMaxTextBytes)
      return Status(ErrorCode::kResourceExhausted,
                    path + ": longer than " + std::to_string(kMaxTextBytes) + " bytes");
    if (got < kChunk) return bytes;
  }
}

Result<DataSet> load_text(const core::TrainerConfig& config) {
  if (config.data.path.empty())
    return Status(ErrorCode::kInvalidArgument, "trainer.data.path: the data set text needs a file");
  if (config.sequence == 0) return Status(ErrorCode::kInvalidArgument, "trainer.sequence: not at least 1");
  Result<std::vector<std::uint8_t>> bytes = read_text(config.data.path);
  if (!bytes.ok()) return bytes.status();
  const std::uint64_t cut = bytes->size() - bytes->size() / 10;
  if (bytes->size() - cut < std::uint64_t{config.sequence} + 1)
    return Status(ErrorCode::kInvalidArgument,
                  config.data.path + ": too short: a tenth of it does not hold one sample of " +
                      std::to_string(config.sequence) + " characters (trainer.sequence)");
  const auto middle = bytes->begin() + static_cast<std::ptrdiff_t>(cut);
  return DataSet{Samples::text({bytes->begin(), middle}, config.sequence),
                 Samples::text({middle, bytes->end()}, config.sequence)};
}

}  // namespace

Samples Samples::images(std::vector<std::uint8_t> bytes, std::vector<std::uint8_t> labels,
                        std::size_t pixels) {
  ISTHMUS_CHECK(bytes.size() == labels.size() * pixels);
  Samples samples;
  samples.size_ = labels.size();
  samples.length_ = pixels;
  samples.bytes_ = std::move(bytes);
  samples.labels_ = std::move(labels);
  return samples;
}

Samples Samples::text(std::vector<std::uint8_t> bytes, std::size_t sequence) {
  ISTHMUS_CHECK(sequence > 0 && bytes.size() > sequence);
  Samples samples;
  samples.size_ = (bytes.size() - 1) / sequence;
  samples.length_ = sequence;
  samples.bytes_ = std::move(bytes);
  samples.is_text_ = true;
  samples.labels_.resize(samples.size_);
  for (std::size_t i = 0; i < samples.size_; ++i)
    samples.labels_[i] = static_cast<std::uint8_t>(10 * i / samples.size_);
  return samples;
}

void Samples::gather(std::span<const std::uint32_t> numbers, Batch& batch) const {
  static constexpr std::array<float, 256> kValues = pixel_values();
  batch.samples = numbers.size();
  batch.pixels.clear();
  batch.tokens.clear();
  batch.targets.clear();
  for (const std::uint32_t number : numbers) {
    ISTHMUS_CHECK(number < size_);
    const std::uint8_t* bytes = bytes_.data() + number * length_;
    if (is_text_) {
      batch.tokens.insert(batch.tokens.end(), bytes, bytes + length_);
      batch.targets.insert(batch.targets.end(), bytes + 1, bytes + 1 + length_);
      continue;
    }
    for (std::size_t i = 0; i < length_; ++i) batch.pixels.push_back(kValues[bytes[i]]);
    batch.targets.push_back(labels_[number]);
  }
}

Result<DataSet> load_dataset(const core::TrainerConfig& config) {
  if (config.data.set == "fashion-mnist") return load_fashion_mnist(config.data);
  if (config.data.set == "text") return load_text(config);
  return Status(ErrorCode::kInvalidArgument,
                "trainer.data.set: '" + config.data.set + "' is none of fashion-mnist, text");
}

}  // namespace isthmus::models
