// A shard on its own thread, and workers that speak to it frame by frame over real sockets. Its clock stands
// still until the test moves it; what a shard needs of a process is written down instead of done.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/shard.h"
#include "tests/server/server_support.h"
#include "tests/support/manual_clock.h"

namespace isthmus::server {

inline constexpr std::chrono::seconds kPatience(30);  // Generous: it only ends a test that hangs.

class FakeHost final : public ShardHost {
  auto locked(const auto& get) {
    std::lock_guard lock(mutex_);
    return get();
  }
  bool wait_for(const auto& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }

 public:
  explicit FakeHost(const core::JobConfig& config) : config_(config) {}

  void propose(core::Layout layout) override {
    std::lock_guard lock(mutex_);
    if (agreement_) return;
    agreement_ = std::make_shared<const Agreement>(Agreement{layout, Directory(config_, layout)});
    ShardEvent event = Begin{agreement_, std::exchange(to_restore, std::nullopt)};
    EXPECT_TRUE(mailbox->try_push(event));
  }
  void send(wan::Peer to, proto::Message message) override {
    std::lock_guard lock(mutex_);
    sent_.push_back({to, std::move(message)});
    changed_.notify_all();
  }
  void clock_changed() override {}
  void captured(std::uint32_t, std::optional<SavedShard> saved) override {
    std::lock_guard lock(mutex_);
    captured_.push_back(std::move(saved));
    changed_.notify_all();
  }
  void drained(std::vector<std::uint32_t> without) override {
    std::lock_guard lock(mutex_);
    ++drained_;
    without_ = std::move(without);
    changed_.notify_all();
  }
  void failed(Status why) override {
    std::lock_guard lock(mutex_);
    failure_ = std::move(why);
    changed_.notify_all();
  }
  void exit_requested() override {
    std::lock_guard lock(mutex_);
    ++exits_;
    changed_.notify_all();
  }
  std::vector<wan::LinkState> links() const override { return link_states; }
  void log(const std::string& line) override {
    std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }

  int drained_count() {
    return locked([this] { return drained_; });
  }
  bool wait_for_drained() {
    return wait_for([this] { return drained_ > 0; });
  }
  // How the job failed.
  std::string wait_for_failure() {
    return wait_for([this] { return !failure_.ok(); }) ? locked([this] { return failure_.message(); }) : "";
  }
  std::vector<std::uint32_t> last_sync_without() {
    return locked([this] { return without_; });
  }
  bool wait_for_exit() {
    return wait_for([this] { return exits_ > 0; });
  }
  bool wait_for_sent(std::size_t count) {
    return wait_for([this, count] { return sent_.size() >= count; });
  }
  std::vector<WanMessage> sent() {
    return locked([this] { return sent_; });
  }
  int lines_with(std::string_view text) {
    return locked([&] {
      return static_cast<int>(std::count_if(lines_.begin(), lines_.end(), [&](const std::string& line) {
        return line.find(text) != std::string::npos;
      }));
    });
  }

  // The newest of at least `count`; none when they do not come.
  std::optional<SavedShard> wait_for_captured(std::size_t count) {
    if (!wait_for([this, count] { return captured_.size() >= count; })) return std::nullopt;
    return locked([this] { return captured_.back(); });
  }

  core::Mailbox<ShardEvent>* mailbox = nullptr;
  std::optional<SavedShard> to_restore;     // Set before a worker joins.
  std::vector<wan::LinkState> link_states;  // Set before the shard runs.

 private:
  const core::JobConfig& config_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const Agreement> agreement_;
  std::vector<WanMessage> sent_;
  std::vector<std::optional<SavedShard>> captured_;
  std::vector<std::string> lines_;
  int drained_ = 0;
  std::vector<std::uint32_t> without_;
  Status failure_;
  int exits_ = 0;
};

// Values and versions by slice, as a reply brought them.
struct Pulled {
  std::map<core::SliceId, std::vector<float>> values;
  std::map<core::SliceId, std::uint64_t> versions;
};

inline core::SharedBytes record_of(const std::vector<float>& values) {
  return core::copy_bytes(std::as_bytes(std::span(values)));
}

// A connection of one worker or observer. Requests are numbered; replies may come in any order.
class RawWorker {
 public:
  RawWorker(transport::Context& context, std::uint16_t port, std::uint32_t worker = 0) : worker_(worker) {
    auto socket = transport::Socket::dealer(context, {"127.0.0.1", port}, {});
    EXPECT_TRUE(socket.ok());
    socket_ = *std::move(socket);
  }

  std::uint64_t ask(proto::Message message) {
    message.request_id = ++last_id_;
    EXPECT_TRUE(socket_->send(std::move(message)).ok());
    return last_id_;
  }
  template <typename Meta>
  std::uint64_t ask(proto::Kind kind, const Meta& meta) {
    return ask(proto::make_message(kind, 0, meta));
  }
  // Waits for the answer. A message of kind kHeartbeat without an id when there is none.
  proto::Message reply(std::uint64_t id) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!replies_.contains(id) && std::chrono::steady_clock::now() < until) receive();
    if (!replies_.contains(id)) {
      ADD_FAILURE() << "no reply";
      return {};
    }
    proto::Message found = std::move(replies_.at(id));
    replies_.erase(id);
    return found;
  }
  // Whether the answer is here after the shard has had its turn. False may come too early to be sure; a
  // test that expects it can only fail for a reason.
  bool answered(std::uint64_t id) {
    for (int turn = 0; turn < 2; ++turn) (void)reply(ask(proto::Kind::kHeartbeat, proto::Heartbeat()));
    return replies_.contains(id);
  }

  proto::Hello hello_meta(const core::JobConfig& config, const core::Layout& layout,
                          std::uint32_t region = 0) const {
    proto::Hello hello;
    hello.set_job(config.job);
    hello.set_region(config.regions[region].name);
    hello.set_worker(worker_);
    hello.set_incarnation(1);
    *hello.mutable_layout() = proto::to_table(layout);
    return hello;
  }
  proto::Message say(const proto::Hello& hello) { return reply(ask(proto::Kind::kHello, hello)); }

  std::uint64_t ask_initialize(const std::map<core::SliceId, std::vector<float>>& values) {
    proto::Initialize meta;
    proto::Message message;
    for (const auto& [slice, of_slice] : values)
      add_record(*meta.add_records(), slice, record_of(of_slice), 1, message);
    message.kind = proto::Kind::kInitialize;
    message.meta = meta.SerializeAsString();
    return ask(std::move(message));
  }
  // `known`: the versions held of the slices to pull.
  std::uint64_t ask_push_pull(Step step, std::uint64_t samples,
                              const std::map<core::SliceId, std::vector<float>>& gradients,
                              const std::map<core::SliceId, std::uint64_t>& known = {}) {
    proto::PushPull meta;
    meta.set_step(step);
    meta.set_samples(samples);
    proto::Message message;
    for (const auto& [slice, values] : gradients) {
      add_record(*meta.add_push(), slice, record_of(values), 1, message);
      meta.add_computed_from(1);
    }
    for (const auto& [slice, version] : known) {
      proto::PullRequest* pull = meta.add_pull();
      pull->set_slice(slice);
      pull->set_known_version(version);
    }
    message.kind = proto::Kind::kPushPull;
    message.meta = meta.SerializeAsString();
    return ask(std::move(message));
  }
  std::uint64_t ask_next_step(Step step) {
    proto::NextStep meta;
    meta.set_step(step);
    return ask(proto::Kind::kNextStep, meta);
  }
  std::uint64_t ask_leave(bool done, bool wait_for_final = false) {
    proto::Leave meta;
    meta.set_done(done);
    meta.set_wait_for_final(wait_for_final);
    return ask(proto::Kind::kLeave, meta);
  }
  std::uint64_t ask_snapshot(proto::SnapshotSource source, std::uint64_t round = 0) {
    proto::Snapshot meta;
    meta.set_source(source);
    meta.set_round(round);
    return ask(proto::Kind::kSnapshot, meta);
  }
  proto::Message control(proto::ControlCommand command) {
    proto::Control meta;
    meta.set_command(command);
    return reply(ask(proto::Kind::kControl, meta));
  }
  proto::StatusReply status(bool norms = false) {
    proto::StatusRequest question;
    question.set_norms(norms);
    return *proto::parse_meta<proto::StatusReply>(reply(ask(proto::Kind::kStatus, question)));
  }
  transport::Socket& socket() { return *socket_; }

  static void add_record(proto::Record& record, core::SliceId slice, core::SharedBytes bytes,
                         std::uint32_t codec, proto::Message& message) {
    record.set_slice(slice);
    record.set_bytes(bytes.size());
    record.set_codec(codec);
    message.payload.push_back(std::move(bytes));
  }

 private:
  void receive() {
    transport::Socket* const one[] = {socket_.get()};
    transport::wait(one, -1, std::chrono::seconds(1));
    while (true) {
      auto got = socket_->receive();
      ASSERT_TRUE(got.ok()) << got.status().to_string();
      if (!*got) return;
      replies_[(*got)->message.request_id] = std::move((*got)->message);
    }
  }

  std::uint32_t worker_;
  std::unique_ptr<transport::Socket> socket_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, proto::Message> replies_;
};

// The values that a reply to a pull or a snapshot carries.
template <typename Reply>
Pulled pulled(const proto::Message& message) {
  const auto meta = proto::parse_meta<Reply>(message);
  Pulled result;
  if (!meta.ok()) return result;
  std::vector<std::uint64_t> sizes;
  for (const auto& record : meta->records()) sizes.push_back(record.bytes());
  const auto records = proto::split_records(message, sizes);
  EXPECT_TRUE(records.ok());
  for (std::size_t i = 0; records.ok() && i < records->size(); ++i) {
    const auto& record = meta->records(static_cast<int>(i));
    const auto codec = compression::find_decoder(static_cast<std::uint8_t>(record.codec()));
    std::vector<float>& values = result.values[record.slice()];
    values.resize(4);  // Of every slice in these tests.
    EXPECT_TRUE((*codec)->decode((*records)[i].view, values).ok());
    if constexpr (requires { meta->versions(0); })
      result.versions[record.slice()] = meta->versions(static_cast<int>(i));
  }
  return result;
}
inline Pulled pulled_by(const proto::Message& message) {
  EXPECT_EQ(message.kind, proto::Kind::kPushPullReply);
  return pulled<proto::PushPullReply>(message);
}
inline Pulled snapshot_in(const proto::Message& message) {
  EXPECT_EQ(message.kind, proto::Kind::kSnapshotReply);
  return pulled<proto::SnapshotReply>(message);
}

inline void expect_refused(const proto::Message& message, proto::RefuseReason reason, std::string_view text) {
  ASSERT_EQ(message.kind, proto::Kind::kRefuse) << to_string(message.kind);
  const auto refusal = proto::parse_meta<proto::Refuse>(message);
  EXPECT_EQ(refusal->reason(), reason) << refusal->text();
  EXPECT_NE(refusal->text().find(text), std::string::npos) << refusal->text();
}

// One region, one shard, two slices of 4 elements, SGD with a rate of 1, unless a test says otherwise.
class ShardTest : public ::testing::Test {
 protected:
  ~ShardTest() override { stop(); }

  void run_shard(std::uint32_t local_shard = 0) {
    host_ = std::make_unique<FakeHost>(config_);
    host_->link_states = link_states_;
    host_->to_restore = to_restore_;
    table_ = std::make_unique<RegionTable>(config_, 0, 1, clock_.now());
    auto shard = Shard::create({&config_, 0, 0, local_shard, 100}, context_, clock_, *table_, *host_);
    ASSERT_TRUE(shard.ok()) << shard.status().to_string();
    shard_ = *std::move(shard);
    host_->mailbox = &shard_->mailbox();
    thread_ = std::thread([this] { shard_->run(); });
  }
  void stop() {
    if (shard_) shard_->stop();
    if (thread_.joinable()) thread_.join();
  }
  // Moves the clock, and lets the shard see it.
  void advance(core::Duration by) {
    clock_.advance(by);
    shard_->mailbox().wake();
  }

  RawWorker connect(std::uint32_t worker = 0) { return {context_, shard_->port(), worker}; }
  // A worker that has joined.
  RawWorker join(std::uint32_t worker = 0, std::uint64_t incarnation = 1) {
    RawWorker raw = connect(worker);
    proto::Hello hello = raw.hello_meta(config_, layout_);
    hello.set_incarnation(incarnation);
    EXPECT_EQ(raw.say(hello).kind, proto::Kind::kWelcome);
    return raw;
  }
  static std::map<core::SliceId, std::vector<float>> both(float value) {
    return {{0, std::vector<float>(4, value)}, {1, std::vector<float>(4, value)}};
  }
  // `workers` that have joined, with initial parameters of `value`.
  std::vector<RawWorker> train(std::uint32_t workers, float value = 1) {
    config_.regions[0].workers = workers;
    run_shard();
    std::vector<RawWorker> all;
    for (std::uint32_t worker = 0; worker < workers; ++worker) all.push_back(join(worker));
    EXPECT_EQ(all[0].reply(all[0].ask_initialize(both(value))).kind, proto::Kind::kInitializeReply);
    return all;
  }
  // Asks again until the answer is yes. Each question is a round trip, so nothing spins.
  bool eventually(RawWorker& raw, const std::function<bool(const proto::StatusReply&)>& is_so) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until && !HasFailure()) {
      if (is_so(raw.status())) return true;
    }
    return false;
  }
  // The shard's parameters: the first element of slice 0.
  float parameter(RawWorker& raw) {
    const Pulled got = snapshot_in(raw.reply(raw.ask_snapshot(proto::SNAPSHOT_PARAMETERS)));
    return got.values.contains(0) ? got.values.at(0)[0] : std::nanf("");
  }

  core::JobConfig config_ = small_job({{1}});
  core::Layout layout_ = layout_of({4, 4});
  std::vector<wan::LinkState> link_states_;
  std::optional<SavedShard> to_restore_;
  isthmus::testing::ManualClock clock_;
  transport::Context context_;
  std::unique_ptr<RegionTable> table_;
  std::unique_ptr<FakeHost> host_;
  std::unique_ptr<Shard> shard_;
  std::thread thread_;
};

}  // namespace isthmus::server
