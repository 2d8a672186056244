// The thread that moves a client's bytes: one DEALER a shard, one inbox, one Session.
//
// Threads: submit(), step() and inbox() from any; all else happens on the thread it owns.
// Memory:  what its Session and sockets hold.
// Errors:  an operation that cannot be taken on ends at once, in kResourceExhausted. An exception of a
//          library ends all operations, now and later, in kInternal.

#pragma once

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "isthmus/status.h"
#include "transport/socket.h"
#include "worker/operation.h"
#include "worker/session.h"
#include "worker/shards.h"

namespace isthmus::worker {

class IoThread {
 public:
  static Result<std::unique_ptr<IoThread>> start(std::span<const ShardAddress> shards, SessionOptions session,
                                                 const transport::SocketOptions& socket);
  // Ends what is in flight in kCancelled. Waits for the socket's linger at most.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void submit(const OperationPtr& operation);
  Step step() const noexcept { return session_.step(); }
  const std::shared_ptr<Inbox>& inbox() const noexcept { return inbox_; }

 private:
  explicit IoThread(SessionOptions session);
  void run(const std::stop_token& stop);
  void turn();
  void obey(Command&& command);
  void read(std::uint32_t shard);

  transport::Context context_;
  std::vector<std::unique_ptr<transport::Socket>> sockets_;  // [shard]
  std::vector<transport::Socket*> polled_;                   // The same.
  std::shared_ptr<Inbox> inbox_;
  Session session_;
  std::jthread thread_;
};

}  // namespace isthmus::worker
