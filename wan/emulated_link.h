// An emulated link as a model: a Shaper each way, and the outages that they share.
//
// Threads: a value for one thread. It reads no clock: time is what the caller says, since the link's start.
// Memory:  as Shaper's.
// Errors:  create() checks its numbers (kInvalidArgument); nothing else fails.

#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "wan/shaper.h"

namespace isthmus::wan {

enum class Way : std::uint8_t { kThere, kBack };  // From who dialled to the target, and back.

inline constexpr std::array kBothWays = {Way::kThere, Way::kBack};

constexpr Way opposite(Way way) { return way == Way::kThere ? Way::kBack : Way::kThere; }

// One T for each way.
template <typename T>
struct EachWay {
  T there;
  T back;
  T& operator[](Way way) { return way == Way::kThere ? there : back; }
  const T& operator[](Way way) const { return way == Way::kThere ? there : back; }
};

class EmulatedLink {
 public:
  // `trace` replaces the constant rate from its first step on; it may be empty. Its file is the caller's
  // business (wan/bandwidth_trace.h).
  static Result<EmulatedLink> create(const core::EmulateConfig& config, const std::vector<RateStep>& trace,
                                     std::uint64_t seed);

  // Lets everything due by `now` pass the rates, in order of time over both ways, and begins what outages
  // that brings. Call it before push() and before looking at releases.
  void advance(Duration now);

  Shaper& shaper(Way way) { return shapers_[way]; }
  const Shaper& shaper(Way way) const { return shapers_[way]; }

  // True once for each outage of the kind that cuts, when it has begun: every connection is lost, and with
  // them whatever clear() forgets.
  bool take_cut(Duration now);
  void clear();

  // Connections cannot be made now.
  bool cut_at(Duration now) const;

  // When there is something to do next: a departure, a release or a cut.
  std::optional<Duration> next_event() const;

 private:
  struct Outage {
    Duration begin, end;
    bool cut;
    bool taken;
  };

  EmulatedLink(std::vector<core::OutageConfig> by_bytes, EachWay<Shaper> shapers)
      : by_bytes_(std::move(by_bytes)), shapers_(std::move(shapers)) {}
  void begin_outage(const core::OutageConfig& outage, Duration at);

  std::vector<core::OutageConfig> by_bytes_;  // Those that have not begun.
  std::vector<Outage> outages_;               // All others, also of the future.
  EachWay<Shaper> shapers_;
};

}  // namespace isthmus::wan
