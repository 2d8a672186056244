#include "server/server.h"

#include <poll.h>

#include <algorithm>
#include <exception>

#include "core/check.h"

namespace isthmus::server {
namespace {

constexpr std::size_t kEvents = 4096;
constexpr auto kFlush = std::chrono::seconds(2);
constexpr auto kCaptureGrace = std::chrono::seconds(1);
constexpr std::int64_t kLongestPollMs = 3'600'000;

// Later lives of a process have larger numbers as long as the host's clock does not go back; if it does,
// peers refuse the new process and say so.
std::uint64_t new_incarnation() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      incarnation_(new_incarnation()),
      table_(options_.config, options_.region,
             options_.config.regions[options_.region].servers[options_.server].shards, clock_.now()),
      events_(kEvents) {}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  std::unique_ptr<Server> server(new Server(std::move(options)));
  ISTHMUS_RETURN_IF_ERROR(server->open_checkpoints());
  ISTHMUS_RETURN_IF_ERROR(server->start_shards());
  if (server->saved_) {
    ISTHMUS_RETURN_IF_ERROR(server->agree(server->saved_->layout));
  } else if (server->options_.layout) {
    ISTHMUS_RETURN_IF_ERROR(server->agree(*server->options_.layout));
  }
  return server;
}

Status Server::open_checkpoints() {
  const core::JobConfig& config = options_.config;
  if (!config.checkpoint) return {};
  const std::filesystem::path folder =
      checkpoint_folder(config.checkpoint->directory, config.regions[options_.region].name, options_.server);
  auto store = CheckpointStore::open(folder, config.checkpoint->keep);
  if (!store.ok()) return std::move(store).status().with_context("checkpoints");
  const auto life = store->begin_life(incarnation_);
  if (!life.ok()) return life.status();
  incarnation_ = *life;
  auto found = store->newest(options_.restore_at_most, [this](const std::string& line) { log(line); });
  if (!found.ok()) return std::move(found).status();
  if (*found) {
    SavedServer& saved = (*found)->saved;
    const Status fits = check_fits(saved, config, options_.region, options_.server);
    if (!fits.ok())
      return Status(fits).with_context("checkpoint " + (*found)->folder.string() + " does not fit");
    if (options_.layout && options_.layout->hash() != saved.layout.hash())
      return {ErrorCode::kInvalidArgument,
              "checkpoint " + (*found)->folder.string() + " does not fit: it is of another model: " +
                  core::Layout::difference(saved.layout, *options_.layout) + " ('here' is the checkpoint)"};
    log("goes on from checkpoint " + (*found)->folder.string());
    saved_ = std::move(saved);
  }
  captured_.resize(config.regions[options_.region].servers[options_.server].shards);
  if (config.checkpoint->every_time.count() > 0)
    next_checkpoint_ = clock_.now() + config.checkpoint->every_time;
  writer_ = std::make_unique<CheckpointWriter>(
      *std::move(store), [this](CheckpointWriter::Outcome outcome) { post(Written{std::move(outcome)}); });
  return {};
}

Status Server::start_shards() {
  ShardOptions options{&options_.config, options_.region, options_.server, 0, incarnation_};
  const std::uint32_t shards = options_.config.regions[options_.region].servers[options_.server].shards;
  for (std::uint32_t i = 0; i < shards; ++i) {
    options.local_shard = i;
    auto shard = Shard::create(options, context_, clock_, table_, *this);
    if (!shard.ok()) return std::move(shard).status();
    shards_.push_back(*std::move(shard));
    shards_.back()->mailbox().on_space([this] {
      if (wan::Endpoint* endpoint = shared_endpoint_.load()) endpoint->resume();
    });
  }
  for (auto& shard : shards_) {
    threads_.emplace_back([this, &shard = *shard] {
      try {
        shard.run();
      } catch (const std::exception& e) {
        post(Failed{{ErrorCode::kInternal, std::string("shard: ") + e.what()}});
      }
    });
  }
  return {};
}

Server::~Server() { shut_down(); }

void Server::shut_down() {
  // The links first: their thread calls into the shards.
  if (endpoint_) (void)endpoint_->flush(kFlush);
  for (auto& shard : shards_) shard->stop();
  threads_.clear();
  shared_endpoint_ = nullptr;
  endpoint_.reset();
}

Status Server::agree(core::Layout layout) {
  if (agreement_) return {};
  ISTHMUS_RETURN_IF_ERROR(check_message_limit(options_.config, layout));
  auto agreement = std::make_shared<const Agreement>(Agreement{layout, Directory(options_.config, layout)});
  agreement_ = agreement;
  // First the shards, then the links: nothing must arrive at a shard that does not know its slices.
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    ShardEvent event = Begin{agreement, saved_ ? std::optional(std::move(saved_->shards[i])) : std::nullopt};
    ISTHMUS_CHECK(shards_[i]->mailbox().try_push(event));
  }
  saved_.reset();
  if (options_.config.regions.size() == 1) return {};
  wan::EndpointOptions endpoint_options{.config = options_.config,
                                        .region = options_.region,
                                        .server = options_.server,
                                        .incarnation = incarnation_,
                                        .layout = agreement->layout,
                                        .via = options_.via,
                                        .log = [this](const std::string& line) { log(line); },
                                        .timing = {}};
  auto endpoint = wan::Endpoint::start(std::move(endpoint_options), *this);
  if (!endpoint.ok()) return std::move(endpoint).status();
  endpoint_ = *std::move(endpoint);
  shared_endpoint_ = endpoint_.get();
  // What shards wanted to send until now was dropped; a link that comes up repeats it.
  endpoint_->set_clock(table_.own_clock());
  wake_shards();
  return {};
}

Status Server::run() {
  Status status = serve();
  finish_checkpoints();
  return status;
}

template <typename Handle>
bool Server::take_events(std::optional<core::TimePoint> until, const Handle& handle) {
  int timeout_ms = -1;
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - clock_.now()).count();
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongestPollMs));
  }
  pollfd entry{events_.fd(), POLLIN, 0};
  (void)::poll(&entry, 1, timeout_ms);
  events_.clear_wake();
  while (auto event = events_.try_pop()) {
    if (auto* captured = std::get_if<Captured>(&*event)) {
      on_captured(std::move(*captured));
    } else if (const auto* written = std::get_if<Written>(&*event)) {
      on_written(written->outcome);
    } else if (!handle(*event)) {
      return false;
    }
  }
  return true;
}

Status Server::serve() {
  std::size_t drained = 0;
  std::set<std::uint32_t> without;  // Regions that the last sync did not reach.
  std::optional<core::TimePoint> leave_at;
  std::optional<Status> end;
  while (!end) {
    if (leave_at && clock_.now() >= *leave_at) return ended(without);
    if (next_checkpoint_ && clock_.now() >= *next_checkpoint_) {
      next_checkpoint_ = clock_.now() + options_.config.checkpoint->every_time;
      // A little ahead, so that all shards come to it between the same two steps.
      const Step clock = table_.own_clock();
      if (clock != wan::kFinishedClock) ask_shards(CaptureAt{clock + 2});
    }
    const auto until = leave_at ? leave_at : next_checkpoint_;
    (void)take_events(until, [&](Event& event) {
      if (auto* proposed = std::get_if<Proposed>(&event)) {
        if (Status status = agree(std::move(proposed->layout)); !status.ok()) end = std::move(status);
      } else if (auto* shard = std::get_if<ShardDrained>(&event)) {
        without.insert(shard->without.begin(), shard->without.end());
        if (++drained < shards_.size()) return true;
        log(without.empty() ? "the last sync is done" : ended(without).message());
        if (!options_.hold) leave_at = clock_.now() + options_.linger;
      } else if (std::holds_alternative<ExitRequested>(event)) {
        end = drained == shards_.size()
                  ? ended(without)
                  : Status(ErrorCode::kCancelled, "told to exit before the last sync was done");
      } else if (std::holds_alternative<Cancelled>(event)) {
        last_capture_wanted_ = writer_ && agreement_ && drained < shards_.size();
        if (last_capture_wanted_) ask_shards(CaptureAndEnd{});
        end = Status(ErrorCode::kCancelled, "stopped by a signal");
      } else {
        end = std::get<Failed>(event).why;
      }
      return !end.has_value();
    });
  }
  return *end;
}

// A shard that is too busy to take the question is asked the next time.
void Server::ask_shards(const ShardEvent& question) {
  if (!writer_ || !agreement_) return;
  for (auto& shard : shards_) {
    ShardEvent event = question;
    (void)shard->mailbox().try_push(event);
  }
}

void Server::on_captured(Captured captured) {
  if (!captured.saved) last_capture_wanted_ = false;
  captured_[captured.local_shard] = std::move(captured.saved);
  if (!std::all_of(captured_.begin(), captured_.end(), [](const auto& shard) { return shard.has_value(); }))
    return;
  const core::JobConfig& config = options_.config;
  SavedServer saved{.job = config.job,
                    .region = config.regions[options_.region].name,
                    .server = options_.server,
                    .optimizer = std::string(to_string(config.optimizer.kind)),
                    .mean_squares = config.commit.compensation && config.commit.compensation->adaptive,
                    .layout = agreement_->layout,
                    .shards = {}};
  last_capture_wanted_ = false;
  for (auto& shard : captured_) saved.shards.push_back(*std::exchange(shard, std::nullopt));
  if (!writer_->write(std::move(saved)))
    log("a checkpoint was left out: the disk is slower than checkpoint.every");
}

void Server::on_written(const CheckpointWriter::Outcome& outcome) {
  writer_->written();
  if (outcome.folder.ok()) return log("checkpoint " + outcome.folder->string());
  ShardEvent complaint = Complaint{"the checkpoint of step " + std::to_string(outcome.step) +
                                   " could not be written: " + outcome.folder.status().to_string() +
                                   "; training goes on, the one before it is kept"};
  (void)shards_.front()->mailbox().try_push(complaint);
}

void Server::finish_checkpoints() {
  if (!writer_) return;
  const core::TimePoint begun = clock_.now();
  while (true) {
    // Shards that have no values yet have nothing to save, and say nothing.
    const bool capturing = last_capture_wanted_ && clock_.now() < begun + kCaptureGrace;
    const core::TimePoint until =
        begun + (capturing ? core::Duration(kCaptureGrace) : options_.config.limits.operation_timeout);
    if ((!capturing && writer_->idle()) || clock_.now() >= until) return;
    (void)take_events(until, [](const Event&) { return true; });
  }
}

Status Server::ended(const std::set<std::uint32_t>& without) const {
  if (without.empty()) return {};
  std::string names;
  for (const std::uint32_t region : without)
    names += (names.empty() ? "" : ", ") + options_.config.regions[region].name;
  return {ErrorCode::kFailed, "the last sync was done without " + names +
                                  ": out of reach for limits.operation_timeout; the parameters here lack "
                                  "what was not told"};
}

void Server::post(Event event) {
  // Few and rare; the process's own thread always reads.
  while (!events_.try_push(event)) std::this_thread::yield();
}

void Server::request_stop() {
  for (auto& shard : shards_) shard->request_stop_training();
}

void Server::cancel() { post(Cancelled{}); }

void Server::send(wan::Peer to, proto::Message message) {
  // Down links drop; RegionSync repeats what was not acknowledged when the link is up again.
  if (wan::Endpoint* endpoint = shared_endpoint_.load()) (void)endpoint->send(to, std::move(message));
}

void Server::clock_changed() {
  wan::Endpoint* endpoint = shared_endpoint_.load();
  if (endpoint == nullptr) return;
  // Shards come here at once. Whoever tells the endpoint last must have told it the newest.
  Step told = 0;
  do {
    told = table_.own_clock();
    endpoint->set_clock(told);
  } while (told != table_.own_clock());
}

std::vector<wan::LinkState> Server::links() const {
  const wan::Endpoint* endpoint = shared_endpoint_.load();
  return endpoint ? endpoint->links() : std::vector<wan::LinkState>();
}

void Server::log(const std::string& line) {
  if (options_.log) options_.log(line);
}

bool Server::on_message(wan::Peer from, proto::Message& message) {
  const Directory& directory = agreement_->directory;
  if (message.request_id >= directory.slices()) return true;  // Dropped: no such slice.
  const auto slice = static_cast<core::SliceId>(message.request_id);
  const std::uint32_t shard = directory.shard_of(options_.region, slice);
  const std::uint32_t first = directory.first_shard(options_.region, options_.server);
  if (shard < first || shard >= first + shards_.size()) return true;  // Dropped: another server's.
  ShardEvent event = WanMessage{from, std::move(message)};
  if (shards_[shard - first]->mailbox().try_push(event)) return true;
  message = std::move(std::get<WanMessage>(event).message);
  return false;
}

void Server::on_link_up(wan::Peer peer, std::uint64_t incarnation) {
  RegionTable::Entry* entry = table_.find(peer);
  if (entry == nullptr) return;
  const std::uint64_t before = entry->incarnation.exchange(incarnation);
  if (before != 0 && before != incarnation) {
    log(describe(peer) + " has restarted");
    entry->clock = 0;  // It may have gone back to a checkpoint; its next message tells.
  }
  log("link to " + describe(peer) + " is up");
  entry->up = true;
  entry->generation.fetch_add(1, std::memory_order_release);
  wake_shards();
}

void Server::on_link_down(wan::Peer peer, const Status& why) {
  RegionTable::Entry* entry = table_.find(peer);
  if (entry == nullptr) return;
  log("link to " + describe(peer) + " is down: " + why.to_string());
  entry->down_since = clock_.now().time_since_epoch().count();
  entry->up = false;
  wake_shards();
}

void Server::on_clock(wan::Peer peer, Step clock) {
  table_.advance_clock(peer, clock);
  wake_shards();
}

void Server::on_refused(wan::Peer peer, const Status& why) {
  log(describe(peer) + ": " + why.to_string());
  // Later regions dial earlier ones. Whoever is dialled by somebody wrong waits for somebody right; who
  // dials, and never got in, is configured wrongly, and says so. Whoever has been in the job keeps trying.
  const RegionTable::Entry* entry = table_.find(peer);
  if (peer.region < options_.region && entry != nullptr && entry->generation.load() == 0) {
    Status status = why;
    post(Failed{std::move(status).with_context(describe(peer))});
  }
}

void Server::wake_shards() {
  for (auto& shard : shards_) shard->mailbox().wake();
}

std::string Server::describe(wan::Peer peer) const {
  const core::RegionConfig& region = options_.config.regions[peer.region];
  return "region " + region.name +
         (region.servers.size() > 1 ? ", server " + std::to_string(peer.server) : "");
}

}  // namespace isthmus::server
