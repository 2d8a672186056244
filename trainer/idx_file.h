// Reads IDX, the format of the MNIST family: arrays of bytes, gzipped or plain.
//
//   00 00 08 N | N dimensions, 32 bits each, big-endian | the bytes, row by row
//
// Threads: pure but for the file.
// Memory:  grows with what the file really holds, never with what its header claims.
// Errors:  every message begins with the path. A missing file is kNotFound, bytes that are no such
//   array are kCorruption, one over the limit is kResourceExhausted.

#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "isthmus/status.h"

namespace isthmus::models {

struct IdxArray {
  std::vector<std::uint32_t> dimensions;  // 1 to 4 of them.
  std::vector<std::uint8_t> bytes;        // As many as the product of the dimensions.
};

inline constexpr std::uint64_t kMaxIdxBytes = 1ull << 30;

Result<IdxArray> read_idx(const std::filesystem::path& path);

}  // namespace isthmus::models
