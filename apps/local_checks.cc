#include "apps/local_checks.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "trainer/dataset.h"
#include "wan/certificates.h"

namespace isthmus::apps {
namespace {

namespace fs = std::filesystem;
using Problems = std::vector<core::ConfigProblem>;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void check_data(const core::DataConfig& data, Problems& problems) {
  if (data.set == "text") {
    if (!is_there(data.path))
      problems.push_back({"trainer.data.path", data.path + " is not there; give a text file"});
    return;
  }
  const fs::path folder = data.path.empty() ? fs::path(models::kFashionMnistFolder) : fs::path(data.path);
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                           "t10k-labels-idx1-ubyte"}) {
    if (is_there(folder / name) || is_there(folder / (std::string(name) + ".gz"))) continue;
    problems.push_back({"trainer.data.path", (folder / name).string() +
                                                 " is not there, nor with .gz; install the package "
                                                 "dataset-fashion-mnist or give the folder that has it"});
    return;
  }
}

void check_keys(const core::JobConfig& config, Problems& problems) {
  if (config.security.plaintext || config.regions.size() < 2) return;
  for (const core::RegionConfig& region : config.regions) {
    const wan::KeyFiles files = wan::key_files(config.security.directory, region.name);
    if (is_there(files.ca) && is_there(files.certificate) && is_there(files.key)) continue;
    problems.push_back(
        {"security.directory", config.security.directory + " has no keys for region " + region.name +
                                   " yet; 'isthmus train' makes them, and so does 'isthmus keys'"});
    return;
  }
}

// True when somebody has the port. Not true when it is another machine's, or cannot be tried.
bool taken(const core::Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  if (address.host != "localhost") hints.ai_flags |= AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0)
    return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  // As servers do: what only lingers from an earlier run is not taken.
  const int on = 1;
  (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool in_use = bind(fd, found->ai_addr, found->ai_addrlen) != 0 && errno == EADDRINUSE;
  close(fd);
  return in_use;
}

void check_port(const core::Address& address, const std::string& key, Problems& problems) {
  if (!address.host.empty() && taken(address))
    problems.push_back(
        {key, address.to_string() + " is taken by another process; end it or choose another port"});
}

}  // namespace

std::vector<core::ConfigProblem> find_missing_files(const core::JobConfig& config) {
  Problems problems;
  if (config.trainer.model != "synthetic" && config.trainer.model != "custom")
    check_data(config.trainer.data, problems);
  check_keys(config, problems);
  return problems;
}

std::vector<core::ConfigProblem> find_taken_ports(const core::JobConfig& config) {
  Problems problems;
  for (std::size_t r = 0; r < config.regions.size(); ++r) {
    for (std::size_t s = 0; s < config.regions[r].servers.size(); ++s) {
      const core::ServerConfig& server = config.regions[r].servers[s];
      const std::string key = "regions[" + std::to_string(r) + "].servers[" + std::to_string(s) + "]";
      for (std::uint32_t shard = 0; shard < server.shards; ++shard) {
        core::Address lan = server.lan_bind;
        lan.port = static_cast<std::uint16_t>(lan.port + shard);
        check_port(lan, key + ".lan", problems);
      }
      check_port(server.wan_bind, key + ".wan", problems);
    }
  }
  return problems;
}

}  // namespace isthmus::apps
