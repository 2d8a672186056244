// Files of named tensors in the safetensors format, as PyTorch and others load them.
//
//   header bytes (64 bits, little-endian) | header: JSON, padded with spaces | data
//   header: {"__metadata__": {key: text}, name: {"dtype": "F32", "shape": [..], "data_offsets": [begin,
//   end]}} offsets count from the start of data, where the tensors follow each other without a hole
//
// Threads: pure but for the file; two writers of one path at a time are not supported.
// Memory:  writing takes the header only; reading takes what the file holds.
// Errors:  every message begins with the path. A writer that fails leaves the old file as it was: it
//   writes "PATH.partial" beside it, syncs and renames.

#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::core {

using Metadata = std::map<std::string, std::string>;

// kResourceExhausted: no space left. kInvalidArgument: `path` cannot be written, or a name is no UTF-8,
// or given twice.
// REQUIRES: values[i].size() == table[i].elements().
Status write_safetensors(const std::filesystem::path& path, std::span<const TensorSpec> table,
                         std::span<const ConstTensorView> values, const Metadata& metadata);

struct SafetensorsFile {
  std::vector<TensorSpec> table;  // In the order of their data.
  std::vector<std::vector<float>> values;
  Metadata metadata;
};

// fp32 tensors only. kNotFound, or kCorruption for whatever is not such a file.
Result<SafetensorsFile> read_safetensors(const std::filesystem::path& path);

}  // namespace isthmus::core
