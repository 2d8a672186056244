// The shard's loop. What it is asked: shard_requests.cc; what it answers and when: shard_replies.cc; what
// contributions do: shard_commits.cc.

#include "server/shard.h"

#include <algorithm>

#include "core/check.h"

namespace isthmus::server {
namespace {

constexpr std::size_t kMailboxCapacity = 1024;
// What is taken off the socket before it is folded and answered: much of it would leave the caches first.
constexpr int kRequestsATurn = 64;
constexpr std::uint64_t kBytesATurn = 1 << 20;
constexpr std::size_t kStalenessBuckets = 512;
constexpr auto kLongestWait = std::chrono::seconds(1);
constexpr auto kBetweenComplaints = std::chrono::seconds(1);
// While the last sync is under way its deadlines lie in the RegionTable, which only ever wakes us for news.
constexpr auto kDrainingWait = std::chrono::milliseconds(100);

std::uint32_t first_shard(const core::RegionConfig& region, std::uint32_t server) {
  std::uint32_t shard = 0;
  for (std::uint32_t i = 0; i < server; ++i) shard += region.servers[i].shards;
  return shard;
}

}  // namespace

Result<std::unique_ptr<Shard>> Shard::create(const ShardOptions& options, transport::Context& context,
                                             const core::Clock& clock, RegionTable& table, ShardHost& host) {
  const core::RegionConfig& region = options.config->regions[options.region];
  core::Address address = region.servers[options.server].lan_bind;
  address.port = static_cast<std::uint16_t>(address.port + options.local_shard);
  transport::SocketOptions socket_options;
  socket_options.max_message_bytes = options.config->limits.message_bytes;
  auto socket = transport::Socket::router(context, address, socket_options);
  if (!socket.ok())
    return std::move(socket).status().with_context("lan of region " + region.name + ", shard " +
                                                   std::to_string(options.local_shard));
  return std::unique_ptr<Shard>(new Shard(options, *std::move(socket), clock, table, host));
}

Shard::Shard(const ShardOptions& options, std::unique_ptr<transport::Socket> socket, const core::Clock& clock,
             RegionTable& table, ShardHost& host)
    : options_(options),
      config_(*options.config),
      region_config_(config_.regions[options.region]),
      shard_(first_shard(region_config_, options.server) + options.local_shard),
      socket_(std::move(socket)),
      clock_(clock),
      table_(table),
      host_(host),
      mailbox_(kMailboxCapacity),
      policy_(make_commit_policy(config_.commit)),
      optimizer_(make_optimizer(config_.optimizer)),
      lan_codec_(compression::make_codec(config_.compression.lan)),
      membership_(region_config_.workers, config_.commit.lease, config_.limits.operation_timeout),
      staleness_(kStalenessBuckets, 0) {}

void Shard::stop() noexcept {
  stop_.store(true, std::memory_order_release);
  mailbox_.wake();
}

void Shard::request_stop_training() noexcept {
  stop_training_.store(true, std::memory_order_release);
  mailbox_.wake();
}

void Shard::run() {
  transport::Socket* const sockets[] = {socket_.get()};
  while (!stop_.load(std::memory_order_acquire)) {
    transport::wait(sockets, mailbox_.fd(), time_to_wait());
    mailbox_.clear_wake();
    std::uint64_t bytes = 0;
    for (int i = 0; i < kRequestsATurn && bytes < kBytesATurn; ++i) {
      auto incoming = socket_->receive();
      if (!incoming.ok()) {
        ++refused_malformed_;
        complain("refused a message: " + incoming.status().to_string());
        continue;
      }
      if (!incoming->has_value()) break;
      bytes += (*incoming)->message.payload_bytes();
      handle_request(std::move(**incoming));
    }
    auto event = mailbox_.try_pop();
    more_events_ = event.has_value();
    if (event) handle_event(*std::move(event));
    tick();
  }
}

std::chrono::nanoseconds Shard::time_to_wait() const {
  if (more_events_) return std::chrono::nanoseconds(0);
  const core::TimePoint now = clock_.now();
  core::TimePoint until = now + (draining_ && !drained_ ? kDrainingWait : core::Duration(kLongestWait));
  if (const auto expiry = membership_.next_expiry()) until = std::min(until, *expiry);
  if (sync_) {
    if (const auto deadline = sync_->next_deadline()) until = std::min(until, *deadline);
  }
  return std::max(until - now, std::chrono::nanoseconds(0));
}

void Shard::handle_event(ShardEvent event) {
  if (auto* begins = std::get_if<Begin>(&event)) return begin(std::move(*begins));
  if (std::holds_alternative<CaptureAndEnd>(event)) {
    if (!capture()) host_.captured(options_.local_shard, std::nullopt);
    return stop();
  }
  if (auto* complaint = std::get_if<Complaint>(&event)) return complain(std::move(complaint->what));
  if (const auto* capture = std::get_if<CaptureAt>(&event)) {
    capture_at_ = capture_at_ ? std::min(*capture_at_, capture->step) : capture->step;
    return;
  }
  auto& [from, message] = std::get<WanMessage>(event);
  if (!sync_) return;
  std::optional<Step> sender_clock;
  const Status status = sync_->receive(from, message, clock_.now(), sender_clock);
  if (status.code() == ErrorCode::kFailed) {
    // Once drained nothing is lost by whoever restarts.
    if (!drained_) fail(status);
    return;
  }
  if (!status.ok()) {
    ++refused_malformed_;
    complain("refused a message from region " + config_.regions[from.region].name + ": " +
             status.to_string());
    return;
  }
  if (sender_clock) table_.advance_clock(from, *sender_clock);
  capture_anchors();
}

void Shard::begin(Begin begin) {
  if (agreement_) return;
  agreement_ = std::move(begin.agreement);
  std::uint64_t largest = 0;
  for (const core::Slice& slice : agreement_->layout.slices()) {
    if (agreement_->directory.shard_of(options_.region, slice.id) != shard_) continue;
    slices_.push_back(std::make_unique<LocalSlice>(
        slice, *optimizer_, config_.commit.compensation ? &*config_.commit.compensation : nullptr));
    largest = std::max(largest, slice.elements);
  }
  scratch_.resize(largest);
  if (config_.regions.size() > 1) {
    sync_ = std::make_unique<RegionSync>(
        config_, options_.region, options_.incarnation, agreement_->layout, agreement_->directory, slices_,
        table_, [this](wan::Peer to, proto::Message message) { host_.send(to, std::move(message)); });
  } else if (slices_.empty()) {
    initialized_ = true;
  }
  if (config_.checkpoint) capture_at_ = 0;  // A restart before the next one must not lose the job.
  if (begin.saved) restore(*begin.saved);
  for (auto& [peer, message] : std::exchange(waiting_hellos_, {})) on_hello(peer, message);
}

void Shard::restore(const SavedShard& saved) {
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    slices_[i]->restore(saved.slices[i]);
    if (sync_) sync_->restore(i, saved.slices[i]);
  }
  const std::optional<Step> steps = config_.trainer.stop.steps;
  membership_.restore(saved.clock, saved.members, clock_.now(), steps && saved.clock >= *steps);
  commits_ = saved.commits;
  samples_ = saved.samples;
  initialized_ = true;
  host_.log(name() + ": goes on from step " + std::to_string(saved.clock));
}

Step Shard::next_capture(Step after) const {
  const Step every = config_.checkpoint->every_steps;
  return (after / every + 1) * every;
}

SavedShard Shard::save() const {
  SavedShard saved{.shard = shard_,
                   .clock = membership_.slowest(),
                   .commits = commits_,
                   .samples = samples_,
                   .members = membership_.save(),
                   .slices = {}};
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    saved.slices.push_back(slices_[i]->save());
    if (sync_) sync_->save(i, saved.slices.back());
  }
  return saved;
}

// At a boundary between steps: no worker is let on before answer_parked(), so that under bsp every shard of
// the job saves the same step, whole.
void Shard::capture_if_due() {
  if (!capture_at_ || !ready() || membership_.slowest() < *capture_at_) return;
  for (std::size_t i = 0; i < slices_.size(); ++i)
    if (!settled(i)) return;
  const bool by_steps = config_.checkpoint && config_.checkpoint->every_steps > 0;
  capture_at_ = by_steps ? std::optional(next_capture(membership_.slowest())) : std::nullopt;
  (void)capture();
}

bool Shard::capture() {
  if (!config_.checkpoint || !ready() || failure_) return false;
  host_.captured(options_.local_shard, save());
  return true;
}

void Shard::tick() {
  const core::TimePoint now = clock_.now();
  for (std::uint32_t worker : membership_.expire(now)) {
    host_.log(name() + ": worker " + std::to_string(worker) + " was silent for its lease and is dropped");
    for (auto& slice : slices_) slice->forget(worker);
    std::erase_if(parked_, [&](const Parked& parked) {
      return parked.worker == worker &&
             (parked.kind == proto::Kind::kPushPull || parked.kind == proto::Kind::kNextStep);
    });
  }
  if (!agreement_) return;
  commit_ready_steps();
  if (sync_) sync_->poll_links(now);
  update_clock();
  if (membership_.started() && !training_since_) training_since_ = now;
  const auto& time = config_.trainer.stop.time;
  if (time && training_since_ && now - *training_since_ >= *time) stop_training_ = true;
  if (sync_ && sync_->all_ended()) stop_training_ = true;
  if (!draining_ && (membership_.all_done() ||
                     (stop_training_.load(std::memory_order_acquire) && membership_.living() == 0)))
    begin_drain();
  if (sync_ && (ready() || draining_)) sync_->advance(membership_.slowest(), now);
  capture_anchors();
  check_drained();
  capture_if_due();
  answer_parked();
}

void Shard::update_clock() {
  const Step clock = draining_ ? wan::kFinishedClock : membership_.slowest();
  if (table_.set_own_clock(options_.local_shard, clock)) host_.clock_changed();
}

void Shard::begin_drain() {
  draining_ = true;
  for (const auto& slice : slices_) own_before_final_.push_back(slice->parameters().share());
  host_.log(name() + ": training has ended after " + std::to_string(membership_.slowest()) +
            " steps; the last sync begins");
  update_clock();
  if (sync_) (void)capture();  // A restart must not wait for workers that are done.
  // Also while it waits for its anchors: after a restart the others wait for its last word.
  if (sync_) sync_->drain(clock_.now());
}

void Shard::check_drained() {
  if (!draining_ || drained_) return;
  if (sync_) {
    auto without = sync_->drained(clock_.now());
    if (!without) return;
    last_sync_without_ = *std::move(without);
  }
  drained_ = true;
  (void)capture();
  host_.drained(last_sync_without_);
}

void Shard::fail(Status why) {
  if (failure_) return;
  failure_ = why;
  host_.failed(std::move(why));
}

void Shard::complain(std::string what) {
  last_error_ = std::move(what);
  const core::TimePoint now = clock_.now();
  if (last_complaint_ && now - *last_complaint_ < kBetweenComplaints) return;
  last_complaint_ = now;
  host_.log(name() + ": " + last_error_);
}

bool Shard::ready() const { return sync_ ? sync_->ready() : initialized_; }

bool Shard::settled(std::size_t index) const { return !sync_ || sync_->settled(index); }

std::optional<std::size_t> Shard::index_of(core::SliceId slice) const {
  const auto found =
      std::lower_bound(slices_.begin(), slices_.end(), slice,
                       [](const auto& local, core::SliceId id) { return local->slice().id < id; });
  if (found == slices_.end() || (*found)->slice().id != slice) return std::nullopt;
  return static_cast<std::size_t>(found - slices_.begin());
}

proto::Phase Shard::phase() const {
  if (drained_) return proto::PHASE_DRAINED;
  if (draining_) return proto::PHASE_DRAINING;
  return ready() && membership_.started() ? proto::PHASE_TRAINING : proto::PHASE_WAITING;
}

std::string Shard::name() const { return "shard " + std::to_string(shard_); }

}  // namespace isthmus::server
