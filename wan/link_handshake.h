// What two servers tell each other when a stream opens, and whether they belong together.
//
// Threads: pure functions of values.
// Memory:  none kept.
// Errors:  a Refusal, in words for the peer's person; the peer's bytes can cause nothing else.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/job_config.h"
#include "core/layout.h"
#include "proto/frame.h"
#include "proto/isthmus.pb.h"
#include "wan/endpoint.h"
#include "wan/tls.h"

namespace isthmus::wan {

// Who we are and what we hold. Outlived by what it refers to.
struct LocalSide {
  const core::JobConfig& config;
  const core::Layout& layout;
  std::uint32_t region = 0;
  std::uint32_t server = 0;
  std::uint64_t incarnation = 0;

  const std::string& name() const { return config.regions[region].name; }
};

struct Refusal {
  proto::RefuseReason reason = proto::REFUSE_UNKNOWN;
  std::string text;
};

struct Admission {
  Peer peer;
  std::uint32_t stream = 0;
  std::uint64_t incarnation = 0;
  Step clock = 0;
};

// "virginia", or "virginia server 1" when the region has several.
std::string peer_name(const core::JobConfig& config, Peer peer);

proto::LinkHello make_hello(const LocalSide& local, std::uint64_t link_id, std::uint32_t stream, Step clock);
proto::LinkWelcome make_welcome(const LocalSide& local, Step clock);

// The acceptor's verdict. `certificate` is nothing on a plaintext link.
std::variant<Admission, Refusal> check_hello(const LocalSide& local, const proto::LinkHello& hello,
                                             const std::optional<Identity>& certificate);

// The dialer's verdicts: on the certificate before it says anything, and on the answer.
std::optional<Refusal> check_certificate(const LocalSide& local, Peer dialed, const Identity& certificate);
std::variant<Admission, Refusal> check_welcome(const LocalSide& local, Peer dialed,
                                               const proto::LinkWelcome& welcome);

// `newest` is the latest incarnation of that peer seen so far. An older life must not speak again.
std::optional<Refusal> check_incarnation(const std::string& name, std::uint64_t newest,
                                         std::uint64_t offered);

}  // namespace isthmus::wan
