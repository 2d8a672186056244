// Makes IDX files for tests, from the format's description and not from the reader.
//
// Threads: pure.  Memory: values.  Errors: none.

#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace isthmus::models {

inline std::string idx_bytes(const std::vector<std::uint32_t>& dimensions, const std::string& data) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  for (std::uint32_t dimension : dimensions)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(dimension >> shift));
  return bytes + data;
}

inline void write_gzip(const std::filesystem::path& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

}  // namespace isthmus::models
