// Writes checkpoints while training goes on: one at a time, on a thread of its own. When the next comes
// before one is written, it waits; of those that wait, the newest.
//
// Threads: write(), written() and idle() belong to one thread.
// Memory:  one checkpoint being written and one waiting, as references (saved_state.h).
// Errors:  a checkpoint that could not be written is told to `done`; the next is tried all the same.

#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "core/mailbox.h"
#include "server/checkpoint_store.h"

namespace isthmus::server {

class CheckpointWriter {
 public:
  struct Outcome {
    Step step = 0;
    Result<std::filesystem::path> folder;
  };

  // `done` is called on the writer's thread, once for each that was begun; then written() is due.
  CheckpointWriter(CheckpointStore store, std::function<void(Outcome)> done);
  ~CheckpointWriter();  // Ends what is being written first.

  // False: it takes the place of one that waited.
  bool write(SavedServer saved);
  // An Outcome has been told: begins what waits.
  void written();
  bool idle() const noexcept { return !busy_ && !waiting_; }

 private:
  void run();
  void begin(SavedServer saved);

  const CheckpointStore store_;
  const std::function<void(Outcome)> done_;
  core::Mailbox<SavedServer> mailbox_;
  std::optional<SavedServer> waiting_;
  bool busy_ = false;
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

}  // namespace isthmus::server
