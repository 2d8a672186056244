#include "worker/admin.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/clock.h"
#include "proto/meta.h"
#include "transport/socket.h"
#include "worker/shards.h"

namespace isthmus::worker {
namespace {

using proto::Kind;

// One question, and what became of it.
struct Question {
  std::string where;
  std::unique_ptr<transport::Socket> socket;
  std::optional<Result<proto::Message>> answer;
};

Question put(transport::Context& context, const core::Address& address, Kind kind, const std::string& meta) {
  Question question{to_text(address), nullptr, std::nullopt};
  auto socket = transport::Socket::dealer(context, address, {.linger = {}});
  if (!socket.ok()) {
    question.answer = std::move(socket).status();
    return question;
  }
  question.socket = std::move(*socket);
  Status sent = question.socket->send({kind, 1, meta, {}});
  if (!sent.ok()) question.answer = std::move(sent).with_context(question.where);
  return question;
}

void take_answer(Question& question, Kind expected) {
  if (question.answer) return;
  auto received = question.socket->receive();
  if (!received.ok()) {
    question.answer = std::move(received).status().with_context(question.where);
  } else if (*received) {
    proto::Message& message = (*received)->message;
    if (message.kind == Kind::kRefuse) {
      question.answer = proto::refusal_status(message).with_context(question.where);
    } else if (message.kind != expected) {
      question.answer = Status(ErrorCode::kProtocol,
                               question.where + ": unexpected " + std::string(to_string(message.kind)));
    } else {
      question.answer = std::move(message);
    }
  }
}

std::vector<Result<proto::Message>> ask(std::span<const core::Address> shards, Kind kind, Kind expected,
                                        const std::string& meta, core::Duration timeout) {
  const core::SystemClock clock;
  const core::TimePoint deadline = clock.now() + timeout;
  transport::Context context;
  std::vector<Question> questions;
  for (const core::Address& shard : shards) questions.push_back(put(context, shard, kind, meta));
  while (true) {
    std::vector<transport::Socket*> open;
    for (Question& question : questions) {
      take_answer(question, expected);
      if (!question.answer) open.push_back(question.socket.get());
    }
    if (open.empty() || clock.now() >= deadline) break;
    transport::wait(open, -1, deadline - clock.now());
  }
  std::vector<Result<proto::Message>> answers;
  for (Question& question : questions) {
    if (!question.answer) question.answer = Status(ErrorCode::kTimeout, question.where + ": no answer");
    answers.push_back(std::move(*question.answer));
  }
  return answers;
}

}  // namespace

std::vector<Result<proto::StatusReply>> status(std::span<const core::Address> shards, core::Duration timeout,
                                               const proto::StatusRequest& question) {
  std::vector<Result<proto::StatusReply>> replies;
  for (auto& answer : ask(shards, Kind::kStatus, Kind::kStatusReply, question.SerializeAsString(), timeout)) {
    if (answer.ok())
      replies.push_back(proto::parse_meta<proto::StatusReply>(*answer));
    else
      replies.emplace_back(std::move(answer).status());
  }
  return replies;
}

Result<proto::StatusReply> status(const core::Address& shard, core::Duration timeout) {
  return std::move(status(std::span(&shard, 1), timeout).front());
}

std::vector<Status> control(std::span<const core::Address> shards, proto::ControlCommand command,
                            core::Duration timeout) {
  proto::Control meta;
  meta.set_command(command);
  std::vector<Status> ends;
  for (auto& answer : ask(shards, Kind::kControl, Kind::kControlReply, meta.SerializeAsString(), timeout))
    ends.push_back(std::move(answer).status());
  return ends;
}

Status control(const core::Address& shard, proto::ControlCommand command, core::Duration timeout) {
  return std::move(control(std::span(&shard, 1), command, timeout).front());
}

}  // namespace isthmus::worker
