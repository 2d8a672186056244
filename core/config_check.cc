#include "core/config_check.h"

#include <algorithm>

namespace isthmus::core {
namespace {

using Problems = std::vector<ConfigProblem>;

constexpr std::uint64_t kMaxPort = 65535;
constexpr std::uint64_t kMessageOverheadBytes = 64 << 10;  // Frame and meta, generously.

// Ports of one host that one key of the file claims.
struct Claim {
  std::string host;
  std::uint64_t first;
  std::uint64_t last;
  std::string key;
};

std::string machine(const std::string& host) { return host == "localhost" ? "127.0.0.1" : host; }

Claim claim(const Address& address, std::uint64_t ports, std::string key) {
  return {machine(address.host), address.port, address.port + ports - 1, std::move(key)};
}

bool collide(const Claim& a, const Claim& b) {
  return a.host == b.host && a.first <= b.last && b.first <= a.last;
}

std::string ports_text(const Claim& c) {
  return c.first == c.last ? std::to_string(c.first)
                           : std::to_string(c.first) + " to " + std::to_string(c.last);
}

void report_collision(const Claim& later, const Claim& earlier, Problems& problems) {
  problems.push_back({later.key, "ports " + ports_text(later) + " of " + later.host + " collide with " +
                                     earlier.key + " (" + ports_text(earlier) +
                                     "); a server takes one port a shard, choose others"});
}

void check_address(const Address& address, std::uint64_t ports, bool reachable, const std::string& key,
                   Problems& problems) {
  if (address.port == 0 || address.port + ports - 1 > kMaxPort) {
    problems.push_back({key, "needs " + std::to_string(ports) + " ports from " +
                                 std::to_string(address.port) +
                                 " on, and 65535 is the last; choose a lower port"});
  }
  if (reachable && address.is_wildcard()) {
    problems.push_back({key, "nobody can reach " + address.host +
                                 "; give the address that others use here and " + address.host + " as " +
                                 key.substr(key.rfind('.') + 1) + "_bind"});
  }
}

void check_server(const JobConfig& config, const ServerConfig& server, const std::string& key,
                  Problems& problems) {
  check_address(server.lan, server.shards, true, key + ".lan", problems);
  check_address(server.lan_bind, server.shards, false, key + ".lan_bind", problems);
  if (server.http) check_address(*server.http, 1, false, key + ".http", problems);
  if (server.wan.host.empty()) {
    if (config.regions.size() > 1) {
      problems.push_back({key + ".wan", "missing; give the address that other regions reach"});
    }
    return;
  }
  check_address(server.wan, 1, true, key + ".wan", problems);
  check_address(server.wan_bind, 1, false, key + ".wan_bind", problems);
  // One process binds both, whatever the addresses outside are called.
  Claim lan = claim(server.lan_bind, server.shards, key + ".lan_bind");
  Claim wan = claim(server.wan_bind, 1, key + ".wan_bind");
  if (server.lan_bind.is_wildcard() || server.wan_bind.is_wildcard()) wan.host = lan.host;
  const bool bind_given = server.lan_bind != server.lan || server.wan_bind != server.wan;
  if (bind_given && collide(lan, wan)) report_collision(wan, lan, problems);
}

void check_regions(const JobConfig& config, Problems& problems) {
  std::vector<Claim> claims;
  const auto take = [&](Claim mine) {
    const auto taken =
        std::find_if(claims.begin(), claims.end(), [&](const Claim& c) { return collide(c, mine); });
    if (taken != claims.end()) report_collision(mine, *taken, problems);
    claims.push_back(std::move(mine));
  };
  for (std::size_t r = 0; r < config.regions.size(); ++r) {
    const RegionConfig& region = config.regions[r];
    const std::string key = "regions[" + std::to_string(r) + "]";
    if (config.find_region(region.name) != &region) {
      problems.push_back({key + ".name", "'" + region.name + "' is the name of two regions; choose another"});
    }
    for (std::size_t s = 0; s < region.servers.size(); ++s) {
      const ServerConfig& server = region.servers[s];
      const std::string server_key = key + ".servers[" + std::to_string(s) + "]";
      check_server(config, server, server_key, problems);
      take(claim(server.lan, server.shards, server_key + ".lan"));
      if (!server.wan.host.empty()) take(claim(server.wan, 1, server_key + ".wan"));
      if (server.http) take(claim(*server.http, 1, server_key + ".http"));
    }
  }
}

void check_commit(const CommitConfig& commit, Problems& problems) {
  if (commit.policy == CommitPolicyKind::kDssp && commit.most_staleness < commit.staleness) {
    problems.push_back({"commit.most_staleness", exact_count(commit.most_staleness, "steps") +
                                                     " is below 'staleness: " +
                                                     exact_count(commit.staleness, "steps") + "'; raise it"});
  }
}

void check_sync(const SyncConfig& sync, Problems& problems) {
  if (sync.strategy == SyncStrategy::kLockstep &&
      (sync.every_steps == 0 || sync.every_time != Duration::zero())) {
    problems.push_back({"sync.every", "lockstep counts steps, not time; write for example 'every: 1 step'"});
  }
  if (sync.hard_staleness < sync.every_steps) {
    problems.push_back(
        {"sync.staleness.hard", exact_count(sync.hard_staleness, "steps") +
                                    " is below 'every: " + exact_count(sync.every_steps, "steps") +
                                    "', so workers would wait for ever; raise it"});
  }
}

// Inside a region nobody remembers what a codec lost: it must be little, and with int8 it is.
void check_compression(const CompressionConfig& compression, Problems& problems) {
  switch (compression.lan.kind) {
    case CodecKind::kFp32:
    case CodecKind::kFp16:
    case CodecKind::kBf16:
    case CodecKind::kInt8: return;
    default: break;
  }
  problems.push_back(
      {"compression.lan.codec", std::string(to_string(compression.lan.kind)) +
                                    " is for links between regions; use fp32, fp16, bf16 or int8"});
}

void check_links(const LinksConfig& links, Problems& problems) {
  if (links.silence < 2 * links.heartbeat) {
    problems.push_back({"links.silence", exact_duration(links.silence) + " is less than two heartbeats of " +
                                             exact_duration(links.heartbeat) + "; raise it"});
  }
  if (!links.emulate) return;
  for (std::size_t i = 0; i < links.emulate->outages.size(); ++i) {
    const OutageConfig& outage = links.emulate->outages[i];
    if (outage.at != Duration::zero() && outage.after_bytes != 0) {
      problems.push_back({"links.emulate.outages[" + std::to_string(i) + "]",
                          "starts both at a time and after some bytes; remove 'at' or 'after'"});
    }
  }
}

void check_trainer(const TrainerConfig& trainer, Problems& problems) {
  const StopConfig& stop = trainer.stop;
  if (!stop.steps && !stop.accuracy && !stop.time) {
    problems.push_back({"trainer.stop",
                        "missing; give at least one of steps, accuracy and time, for example "
                        "'stop: { steps: 3000 }'"});
  }
  if (trainer.model == "synthetic") {
    if (stop.accuracy) {
      problems.push_back({"trainer.stop.accuracy", "a synthetic model has none; stop by steps or time"});
    }
    return;
  }
  const std::string wanted = trainer.model == "charlm" ? "text" : "fashion-mnist";
  if (trainer.data.set != wanted) {
    problems.push_back({"trainer.data.set", "model " + trainer.model + " learns from " + wanted +
                                                ", not from " + trainer.data.set +
                                                "; change one of the two"});
  }
}

}  // namespace

std::vector<ConfigProblem> find_problems(const JobConfig& config) {
  Problems problems;
  check_regions(config, problems);
  check_commit(config.commit, problems);
  check_sync(config.sync, problems);
  check_links(config.links, problems);
  check_trainer(config.trainer, problems);
  check_compression(config.compression, problems);
  if (config.compression.deep && (config.optimizer.clip.norm > 0 || config.optimizer.clip.tensor_norm > 0)) {
    problems.push_back({"optimizer.clip",
                        "clips what a step computed, and with compression.deep a worker sends "
                        "what many steps have gathered; remove one of the two"});
  }
  if (config.compression.deep && config.optimizer.kind != OptimizerKind::kSgd) {
    problems.push_back({"compression.deep",
                        "its momentum would be applied twice, or to scaled gradients, with "
                        "optimizer " +
                            std::string(to_string(config.optimizer.kind)) + "; use kind: sgd"});
  }
  const std::uint64_t needed = config.slice_elements * sizeof(float) + kMessageOverheadBytes;
  if (config.limits.message_bytes < needed) {
    problems.push_back({"limits.message", exact_bytes(config.limits.message_bytes) +
                                              " cannot hold a slice of " +
                                              exact_count(config.slice_elements, "elements") +
                                              "; give at least " + exact_bytes(needed)});
  }
  return problems;
}

}  // namespace isthmus::core
