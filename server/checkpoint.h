// One checkpoint of a server as a folder of files: a safetensors file of arrays for each shard, and
// manifest.json with everything else and the files' checksums (proto/checkpoint.proto).
//
//   manifest.json             written last
//   shard-0.safetensors       parameters:TENSOR:OFFSET, state0:TENSOR:OFFSET, ..., global:TENSOR:OFFSET
//
// Threads: pure but for the files.
// Memory:  writing takes a file's header; reading takes what the files hold, twice for a moment.
// Errors:  what is on a disk is as hostile as what comes from a network: kCorruption names the file and what
//          is wrong with it, kNotFound the one that is missing. Writing: kResourceExhausted,
//          kInvalidArgument.

#pragma once

#include <filesystem>

#include "isthmus/status.h"
#include "server/saved_state.h"

namespace isthmus::server {

inline constexpr char kManifestFile[] = "manifest.json";

// Into an empty folder; every file is on the disk when it returns.
Status write_checkpoint(const std::filesystem::path& folder, const SavedServer& saved);

Result<SavedServer> read_checkpoint(const std::filesystem::path& folder);

// The step, from the manifest alone.
Result<Step> checkpoint_step(const std::filesystem::path& folder);

}  // namespace isthmus::server
