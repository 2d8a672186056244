// The data a model learns from and is judged on: images with labels, or text.
//
// Threads: a DataSet does not change once loaded; any thread may read it.
// Memory:  holds the bytes of the set once; a batch is made in the caller's Batch, whose vectors keep
//   their capacity from step to step.
// Errors:  a set that is not there is kNotFound with its path and the way to get it; files that
//   contradict each other or their format are kCorruption.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"

namespace isthmus::models {

// Where Debian's package dataset-fashion-mnist puts its files: read when trainer.data.path is empty.
inline constexpr char kFashionMnistFolder[] = "/usr/share/datasets/fashion-mnist";

// Some samples as a model takes them in. Images fill `pixels` (samples x rows x columns, normalised) and
// one target each; text fills `tokens` (samples x sequence) and as many targets, each the next byte.
struct Batch {
  std::size_t samples = 0;
  std::vector<float> pixels;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> targets;
};

// The samples of one half of a set, numbered from 0.
class Samples {
 public:
  // Images of `pixels` bytes each, one label each.  REQUIRES: sizes that fit.
  static Samples images(std::vector<std::uint8_t> bytes, std::vector<std::uint8_t> labels,
                        std::size_t pixels);
  // Windows of `sequence` bytes one after another; each reads one byte further as its last target.
  static Samples text(std::vector<std::uint8_t> bytes, std::size_t sequence);

  std::size_t size() const noexcept { return size_; }
  std::size_t targets_per_sample() const noexcept { return is_text_ ? length_ : 1; }

  // What a non-iid split goes by, below 256: the class of an image; for text, which tenth of it a
  // sample is from.
  std::span<const std::uint8_t> labels() const noexcept { return labels_; }

  // Fills `batch` with the samples of these numbers.  REQUIRES: each below size().
  void gather(std::span<const std::uint32_t> numbers, Batch& batch) const;

 private:
  Samples() = default;

  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> labels_;
  std::size_t size_ = 0;
  std::size_t length_ = 0;  // Bytes of one sample.
  bool is_text_ = false;
};

struct DataSet {
  Samples train;
  Samples held_out;
};

// fashion-mnist: its four IDX files, gzipped or not. text: the first nine tenths of the file train.
Result<DataSet> load_dataset(const core::TrainerConfig& config);

}  // namespace isthmus::models
