#include "trainer/idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>

namespace isthmus::models {
namespace {

struct GzClose {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};
using GzFile = std::unique_ptr<gzFile_s, GzClose>;

Status corrupt(const std::string& what) { return Status(ErrorCode::kCorruption, what); }

// Fills `out`; anything less is an error.
Status read_exactly(gzFile file, std::span<std::uint8_t> out) {
  const int got = gzread(file, out.data(), static_cast<unsigned>(out.size()));
  if (got == static_cast<int>(out.size())) return {};
  int code = Z_OK;
  const char* why = gzerror(file, &code);
  if (code == Z_ERRNO) return Status(ErrorCode::kInternal, std::string("read: ") + std::strerror(errno));
  if (code != Z_OK && code != Z_BUF_ERROR) return corrupt(std::string("not readable as gzip: ") + why);
  return corrupt("ends too early");
}

// Reads the dimensions; returns how many bytes follow them.
Result<std::uint64_t> read_header(gzFile file, std::vector<std::uint32_t>& dimensions) {
  constexpr std::uint8_t kUnsignedByte = 0x08;
  std::array<std::uint8_t, 4> word{};
  ISTHMUS_RETURN_IF_ERROR(read_exactly(file, word));
  if (word[0] != 0 || word[1] != 0 || word[2] != kUnsignedByte || word[3] < 1 || word[3] > 4)
    return corrupt("not an IDX file of bytes (wrong magic number)");
  std::uint64_t total = 1;
  for (std::size_t left = word[3]; left > 0; --left) {
    ISTHMUS_RETURN_IF_ERROR(read_exactly(file, word));
    const std::uint32_t dimension =
        std::uint32_t{word[0]} << 24 | std::uint32_t{word[1]} << 16 | std::uint32_t{word[2]} << 8 | word[3];
    if (dimension == 0) return corrupt("a dimension is zero");
    total *= dimension;  // At most 2^30 * 2^32.
    if (total > kMaxIdxBytes)
      return Status(ErrorCode::kResourceExhausted,
                    "claims more than " + std::to_string(kMaxIdxBytes) + " bytes");
    dimensions.push_back(dimension);
  }
  return total;
}

Result<IdxArray> read_array(gzFile file) {
  constexpr std::uint64_t kChunk = 1 << 20;
  IdxArray array;
  Result<std::uint64_t> total = read_header(file, array.dimensions);
  if (!total.ok()) return total.status();
  for (std::uint64_t done = 0; done < *total;) {
    const std::uint64_t chunk = std::min(kChunk, *total - done);
    array.bytes.resize(done + chunk);
    ISTHMUS_RETURN_IF_ERROR(read_exactly(file, std::span(array.bytes).subspan(done, chunk)));
    done += chunk;
  }
  std::uint8_t beyond = 0;
  if (gzread(file, &beyond, 1) != 0) return corrupt("goes on after its last element, or fails its checksum");
  return array;
}

}  // namespace

Result<IdxArray> read_idx(const std::filesystem::path& path) {
  errno = 0;
  const GzFile file(gzopen(path.c_str(), "rb"));
  if (!file) {
    const ErrorCode code =
        errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument;
    return Status(code, path.string() + ": " + std::strerror(errno != 0 ? errno : ENOMEM));
  }
  Result<IdxArray> array = read_array(file.get());
  if (!array.ok()) return std::move(array).status().with_context(path.string());
  return array;
}

}  // namespace isthmus::models
