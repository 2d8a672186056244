#include "server/server.h"

#include <poll.h>

#include <algorithm>
#include <exception>

#include "core/check.h"

namespace isthmus::server {
namespace {

constexpr std::size_t kEvents = 4096;
constexpr auto kFlush = std::chrono::seconds(2);

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
  ISTHMUS_RETURN_IF_ERROR(server->start_shards());
  if (server->options_.layout) ISTHMUS_RETURN_IF_ERROR(server->agree(*server->options_.layout));
  return server;
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
  for (auto& shard : shards_) {
    ShardEvent event = agreement;
    ISTHMUS_CHECK(shard->mailbox().try_push(event));
  }
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
  std::size_t drained = 0;
  std::set<std::uint32_t> without;  // Regions that the last sync did not reach.
  std::optional<core::TimePoint> leave_at;
  while (true) {
    int timeout_ms = -1;
    if (leave_at) {
      const auto left = *leave_at - clock_.now();
      if (left.count() <= 0) return ended(without);
      timeout_ms = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(left).count()) + 1;
    }
    pollfd entry{events_.fd(), POLLIN, 0};
    (void)::poll(&entry, 1, timeout_ms);
    events_.clear_wake();
    while (auto event = events_.try_pop()) {
      if (auto* proposed = std::get_if<Proposed>(&*event)) {
        ISTHMUS_RETURN_IF_ERROR(agree(std::move(proposed->layout)));
      } else if (auto* shard = std::get_if<ShardDrained>(&*event)) {
        without.insert(shard->without.begin(), shard->without.end());
        if (++drained < shards_.size()) continue;
        log(without.empty() ? "the last sync is done" : ended(without).message());
        if (!options_.hold) leave_at = clock_.now() + options_.linger;
      } else if (std::holds_alternative<ExitRequested>(*event)) {
        if (drained == shards_.size()) return ended(without);
        return {ErrorCode::kCancelled, "told to exit before the last sync was done"};
      } else if (std::holds_alternative<Cancelled>(*event)) {
        return {ErrorCode::kCancelled, "stopped by a signal"};
      } else {
        return std::get<Failed>(*event).why;
      }
    }
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
  if (before != 0 && before != incarnation) log(describe(peer) + " has restarted");
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
