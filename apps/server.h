// isthmus server: one server process of one region.
//
// Threads: the main thread.  Memory: the server's.  Errors: on stderr; the result is the exit code.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::apps {

struct ServerArguments {
  std::string config;
  std::vector<std::string> overrides;  // "dotted.key=value"
  std::string region;
  std::uint32_t server = 0;      // Its index in the region.
  std::vector<std::string> via;  // "region/server=host:port": dial there instead.
  bool hold = false;             // Stay after the last sync until told to exit.
};

int run_server(const ServerArguments& arguments);

}  // namespace isthmus::apps
