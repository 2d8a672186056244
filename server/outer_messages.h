// What the two sides of the `outer` protocol say to each other about one slice, as values.
// The rules they follow are docs/protocol.md; on the wire they are isthmus.proto's messages.
//
// Threads: values.  Memory: records are shared, never copied.  Errors: none.

#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "core/bytes.h"
#include "isthmus/tensor.h"

namespace isthmus::server {

// Names a state of an anchor. An epoch is one placement of homes; rounds count within it.
struct AnchorId {
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;
  auto operator<=>(const AnchorId&) const = default;
};

// Names a contribution of one region to one slice. The incarnation numbers the lives of the process.
struct ContributionId {
  std::uint64_t incarnation = 0;
  std::uint64_t seq = 0;  // 1, 2, 3, ... within an incarnation; 0: none yet.
  auto operator<=>(const ContributionId&) const = default;
};

// Region to home: encode(parameters - anchor).
struct Contribution {
  ContributionId id;
  AnchorId base;              // The sender's anchor when it was encoded.
  std::uint64_t samples = 0;  // Committed since the last contribution: its weight.
  bool final = false;         // The region's last one: lossless, sent once training has ended.
  std::uint8_t codec = 0;     // CodecId
  core::SharedBytes record;
};

// Home to region: encode(global - view), which moves the anchor from `base` to `id`.
struct GlobalDelta {
  AnchorId base;
  AnchorId id;
  ContributionId folded;                  // The receiver's newest contribution that is in it.
  std::optional<std::uint64_t> checksum;  // Of the anchor after it (see anchor_checksum).
  std::uint8_t codec = 0;                 // CodecId
  core::SharedBytes record;
};

// Region to home: this is my anchor now.
struct GlobalDeltaAck {
  AnchorId id;
  std::uint64_t incarnation = 0;
};

// Home to region: the anchor itself. The one path for a start, a restart and a mismatch; at its own home
// and at the end of the job also for every round, since there it costs nothing or must lose nothing.
struct Reset {
  AnchorId id;
  ContributionId folded;
  bool final = false;        // All regions have ended: these are the job's parameters.
  bool all_told = false;     // The receiver's final contribution is in it.
  core::SharedBytes values;  // fp32, every element.
};

}  // namespace isthmus::server
