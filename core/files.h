// Files that are either there whole or not at all.
//
// Threads: pure but for the files; two writers of one path at a time are not supported.
// Memory:  write_file() takes none; read_file() what the file holds.
// Errors:  every message begins with the path. kResourceExhausted: no space left. kInvalidArgument: the path
//          cannot be written. kNotFound: it cannot be read.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "isthmus/status.h"

namespace isthmus::core {

using FilePiece = std::span<const std::byte>;

// The pieces one after the other, by way of "PATH.partial": on the disk when it returns. A write that fails
// leaves the old file as it was.
Status write_file(const std::filesystem::path& path, std::span<const FilePiece> pieces);
Status write_file(const std::filesystem::path& path, std::string_view text);

// kCorruption when it is longer than `max_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

// Makes the folder and what is missing above it.
Status make_folder(const std::filesystem::path& path);
// Names of files in it that were made, renamed or removed are on the disk when it returns.
Status sync_folder(const std::filesystem::path& path);
// `from` becomes `to`, which must not be a folder with something in it; on the disk when it returns.
Status rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace isthmus::core
