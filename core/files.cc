#include "core/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

namespace isthmus::core {
namespace {

namespace fs = std::filesystem;

Status system_error(const char* what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return {full ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument,
          std::string(what) + ": " + std::strerror(error)};
}

// Closes itself; a writer asks sync_and_close() for the errors that come late.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool open() const { return descriptor_ >= 0; }

  Status write(FilePiece piece) {
    while (!piece.empty()) {
      const ssize_t written = ::write(descriptor_, piece.data(), piece.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error("write", errno);
      piece = piece.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  Status sync_and_close() {
    if (::fsync(descriptor_) != 0) return system_error("sync", errno);
    if (::close(std::exchange(descriptor_, -1)) != 0) return system_error("close", errno);
    return {};
  }

 private:
  int descriptor_;
};

Status write_partial(const fs::path& path, std::span<const FilePiece> pieces) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.open()) return system_error("cannot be written", errno);
  for (const FilePiece piece : pieces) ISTHMUS_RETURN_IF_ERROR(file.write(piece));
  return file.sync_and_close();
}

}  // namespace

Status write_file(const fs::path& path, std::span<const FilePiece> pieces) {
  const fs::path partial = path.string() + ".partial";
  Status status = write_partial(partial, pieces);
  if (status.ok() && std::rename(partial.c_str(), path.c_str()) != 0) status = system_error("rename", errno);
  if (!status.ok()) ::unlink(partial.c_str());
  return std::move(status).with_context(path.string());
}

Status write_file(const fs::path& path, std::string_view text) {
  const FilePiece pieces[] = {std::as_bytes(std::span(text))};
  return write_file(path, pieces);
}

Result<std::string> read_file(const fs::path& path, std::uint64_t max_bytes) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in)
    return Status(ErrorCode::kNotFound,
                  path.string() + ": " + (error ? error.message() : "cannot be opened"));
  if (bytes > max_bytes)
    return Status(ErrorCode::kCorruption,
                  path.string() + ": has " + std::to_string(bytes) + " bytes, more than any such file");
  std::string text(bytes, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(bytes)))
    return Status(ErrorCode::kCorruption, path.string() + ": cannot be read to its end");
  return text;
}

Status make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? system_error("cannot be made", error.value()).with_context(path.string()) : Status();
}

Status sync_folder(const fs::path& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return system_error("cannot be opened", errno).with_context(path.string());
  return folder.sync_and_close().with_context(path.string());
}

Status rename_durably(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return system_error("rename", errno).with_context(to.string());
  return sync_folder(to.parent_path());
}

}  // namespace isthmus::core
