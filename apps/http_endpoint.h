// A small HTTP/1.1 server for those who watch a process: GET and HEAD of short texts, and nothing else.
//
// Threads: start() makes one; `answer` is called there, one request after the other, and may block. The
//          destructor ends it.
// Memory:  bounded: so many connections, each with one header and one answer.
// Errors:  start() names the address that cannot be had. Whoever is slow, sends too much or something else is
//          answered or dropped within the deadline, and logged nowhere: anybody may connect.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/job_config.h"
#include "isthmus/status.h"

namespace isthmus::apps {

struct HttpAnswer {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpEndpoint {
 public:
  // What there is at `path` (from "/", without the query).
  using Answer = std::function<HttpAnswer(std::string_view path)>;

  static constexpr std::size_t kMostConnections = 16;
  static constexpr std::size_t kMostHeaderBytes = 8192;
  static constexpr auto kDeadline = std::chrono::seconds(5);  // For a request, and for taking its answer.

  // Port 0 takes a free one.
  static Result<std::unique_ptr<HttpEndpoint>> start(const core::Address& bind, Answer answer,
                                                     std::chrono::milliseconds deadline = kDeadline);
  virtual ~HttpEndpoint() = default;

  virtual std::uint16_t port() const noexcept = 0;
};

}  // namespace isthmus::apps
