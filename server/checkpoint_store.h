// The checkpoints of one server, the newest few of them in one folder:
//
//   FOLDER/life                     the number of the server's last life
//   FOLDER/00000007-step-400/       checkpoint.h; the first number only grows
//
// A checkpoint appears under its name when it is whole and on the disk. Whatever else can go wrong with it
// later is found when it is read: then the one before it counts.
//
// Threads: belongs to one thread at a time; one process a folder.
// Memory:  small; newest() what a checkpoint holds.
// Errors:  kResourceExhausted and kInvalidArgument name the path that cannot be written; kCorruption when
//          there are checkpoints and none is sound.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "isthmus/status.h"
#include "server/saved_state.h"

namespace isthmus::server {

class CheckpointStore {
 public:
  struct Found {
    std::filesystem::path folder;
    SavedServer saved;
  };
  using Log = std::function<void(const std::string&)>;

  // Makes the folder, and removes what an earlier process has left half done. `keep`: checkpoints, at
  // least 1.
  static Result<CheckpointStore> open(std::filesystem::path folder, std::uint32_t keep);

  // The number of the life that begins, greater than those of all lives here before; at least `clock`. On the
  // disk when it returns: whoever was told a number is never told a smaller one, whatever clocks do.
  Result<std::uint64_t> begin_life(std::uint64_t clock) const;

  // Writes one more and removes what is too many; its folder.
  Result<std::filesystem::path> write(const SavedServer& saved) const;

  // The newest sound one of at most step `at_most`, of all steps when there is none of so early a step.
  // Nothing when there are no checkpoints. `log` is told of those that are damaged. Those of later steps are
  // removed: training goes another way from here, and they must not be taken for its own.
  Result<std::optional<Found>> newest(Step at_most, const Log& log) const;

  // The step of the newest checkpoint with a sound manifest, if any.
  static std::optional<Step> newest_step(const std::filesystem::path& folder);

 private:
  CheckpointStore(std::filesystem::path folder, std::uint32_t keep)
      : folder_(std::move(folder)), keep_(keep) {}

  std::filesystem::path folder_;
  std::uint32_t keep_;
};

// Where a server of a job keeps its checkpoints within the job's folder: FOLDER/frankfurt-0.
std::filesystem::path checkpoint_folder(const std::filesystem::path& directory, const std::string& region,
                                        std::uint32_t server);

}  // namespace isthmus::server
