#include "server/checkpoint_writer.h"

#include <poll.h>

#include <utility>

#include "core/check.h"

namespace isthmus::server {

CheckpointWriter::CheckpointWriter(CheckpointStore store, std::function<void(Outcome)> done)
    : store_(std::move(store)), done_(std::move(done)), mailbox_(1), thread_([this] { run(); }) {}

CheckpointWriter::~CheckpointWriter() {
  stop_.store(true, std::memory_order_release);
  mailbox_.wake();
}

bool CheckpointWriter::write(SavedServer saved) {
  if (!busy_) {
    begin(std::move(saved));
    return true;
  }
  const bool first = !waiting_.has_value();
  waiting_.emplace(std::move(saved));
  return first;
}

void CheckpointWriter::written() {
  busy_ = false;
  if (waiting_) begin(*std::exchange(waiting_, std::nullopt));
}

void CheckpointWriter::begin(SavedServer saved) {
  busy_ = true;
  ISTHMUS_CHECK(mailbox_.try_push(saved));
}

void CheckpointWriter::run() {
  while (true) {
    pollfd entry{mailbox_.fd(), POLLIN, 0};
    (void)::poll(&entry, 1, -1);
    mailbox_.clear_wake();
    while (auto saved = mailbox_.try_pop()) {
      const Step step = saved->step();
      auto folder = store_.write(*saved);
      saved.reset();  // Its arrays are free before anybody hears of it.
      done_({step, std::move(folder)});
    }
    if (stop_.load(std::memory_order_acquire)) return;
  }
}

}  // namespace isthmus::server
