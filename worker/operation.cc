#include "worker/operation.h"

#include <algorithm>
#include <optional>
#include <string>

#include "compression/codec.h"
#include "proto/meta.h"

namespace isthmus {

void Pending::State::answer(const worker::Part& part, proto::Message reply) {
  auto& mine = parts[static_cast<std::size_t>(&part - parts.data())];
  mine.reply = std::move(reply);
  answered.reserve(parts.size());
  answered.push_back(&mine);
  answers.store(answered.size(), std::memory_order_release);
  news.fetch_add(1, std::memory_order_release);
  news.notify_all();
}

void Pending::State::end(Status how) {
  status = std::move(how);
  done.store(true, std::memory_order_release);
  done.notify_all();
  news.fetch_add(1, std::memory_order_release);
  news.notify_all();
}

const worker::Part* Pending::State::next_answered(std::size_t seen) {
  while (true) {
    const std::uint32_t last = news.load(std::memory_order_acquire);
    const bool ended = done.load(std::memory_order_acquire);
    if (answers.load(std::memory_order_acquire) > seen) return answered.data()[seen];
    if (ended) return nullptr;
    news.wait(last, std::memory_order_acquire);
  }
}

namespace worker {
namespace {

Status wrong_reply(std::string what) { return {ErrorCode::kProtocol, "push-pull reply: " + std::move(what)}; }

Status decode_record(const proto::Record& record, const core::SharedBytes& bytes, TensorView to) {
  const auto codec = compression::find_decoder(static_cast<std::uint8_t>(std::min(record.codec(), 255u)));
  if (!codec.ok()) return codec.status();
  return (*codec)->decode(bytes.view, to);
}

// Appends to `held`.
Status decode_part(const Part& part, std::vector<Held>& held) {
  auto reply = proto::parse_meta<proto::PushPullReply>(part.reply);
  if (!reply.ok()) return std::move(reply).status();
  if (reply->versions_size() != reply->records_size()) return wrong_reply("a record has no version");
  std::vector<std::uint64_t> sizes;
  for (const proto::Record& record : reply->records()) sizes.push_back(record.bytes());
  auto records = proto::split_records(part.reply, sizes);
  if (!records.ok()) return std::move(records).status();

  std::vector<std::uint64_t> versions(part.targets.size(), 0);
  for (int i = 0; i < reply->records_size(); ++i) {
    const proto::Record& record = reply->records(i);
    const auto target =
        std::lower_bound(part.targets.begin(), part.targets.end(), record.slice(),
                         [](const Target& t, core::SliceId slice) { return t.slice < slice; });
    if (target == part.targets.end() || target->slice != record.slice())
      return wrong_reply("slice " + std::to_string(record.slice()) + " was not asked for");
    std::uint64_t& version = versions[static_cast<std::size_t>(target - part.targets.begin())];
    if (version != 0 || reply->versions(i) == 0)
      return wrong_reply("slice " + std::to_string(record.slice()) + " comes twice or without a version");
    version = reply->versions(i);
    ISTHMUS_RETURN_IF_ERROR(decode_record(record, (*records)[static_cast<std::size_t>(i)], target->to));
  }
  for (std::size_t i = 0; i < part.targets.size(); ++i) {
    const std::uint64_t known = part.push_pull.pull(static_cast<int>(i)).known_version();
    if (versions[i] == 0 && known == 0)
      return wrong_reply("slice " + std::to_string(part.targets[i].slice) + " is missing");
    held.push_back({part.targets[i].slice, part.targets[i].to.data(), versions[i] ? versions[i] : known,
                    part.membership});
  }
  return {};
}

}  // namespace

Result<std::vector<Held>> decode_replies(Operation& operation) {
  std::vector<Held> held;
  Status status;
  std::size_t seen = 0;
  while (const Part* part = operation.next_answered(seen++)) {
    if (status.ok()) status = decode_part(*part, held);
  }
  if (!operation.status.ok()) return operation.status;
  if (!status.ok()) return status;
  return held;
}

}  // namespace worker

namespace {

// Tells the timer for how long somebody waited.
class Waiting {
 public:
  explicit Waiting(const Pending::State& state) : state_(state), since_(core::SystemClock().now()) {}
  ~Waiting() {
    if (!state_.timer) return;
    const bool exchange = state_.kind == proto::Kind::kPushPull;
    state_.timer->add(exchange ? worker::StepTimer::Part::kExchange : worker::StepTimer::Part::kBarrier,
                      core::SystemClock().now() - since_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  const Pending::State& state_;
  const core::TimePoint since_;
};

}  // namespace

Pending::Pending(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Pending::Pending(Pending&&) noexcept = default;

Pending& Pending::operator=(Pending&& other) noexcept {
  std::swap(state_, other.state_);  // What was here ends with `other`.
  return *this;
}

// The views are free at once: nobody but wait() writes to them.
Pending::~Pending() {
  if (!state_ || ready()) return;
  // Only frees memory early: with a full inbox, the answer or the deadline does.
  if (worker::Command cancel = worker::Cancel{state_}; state_->inbox) (void)state_->inbox->try_push(cancel);
}

bool Pending::ready() const noexcept { return !state_ || state_->done.load(std::memory_order_acquire); }

Status Pending::wait() {
  if (!state_) return {ErrorCode::kInvalidArgument, "wait() on an operation that has been waited for"};
  const std::shared_ptr<State> state = std::move(state_);
  const Waiting waiting(*state);
  if (state->kind != proto::Kind::kPushPull) {
    state->block_until_done();
    return state->status;
  }
  auto held = worker::decode_replies(*state);
  if (!held.ok()) return std::move(held).status();
  // Should the inbox be full, the next pull is told more than it needs; no harm else.
  if (worker::Command note = worker::Decoded{std::move(*held)}; state->inbox)
    (void)state->inbox->try_push(note);
  return {};
}

}  // namespace isthmus
