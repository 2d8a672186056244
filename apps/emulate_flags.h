// What the flags of `isthmus emulate` mean.
//
// Threads: pure functions.  Memory: values.  Errors: kInvalidArgument, with what to write instead.

#pragma once

#include <string>
#include <string_view>

#include "core/job_config.h"
#include "isthmus/status.h"
#include "wan/relay.h"

namespace isthmus::apps {

// As core::parse_address, but the port may be 0: any free one.
Result<core::Address> parse_listen_address(std::string_view text);

// "127.0.0.1:7300=127.0.0.1:7200"
Result<wan::RelayMapping> parse_mapping(std::string_view text);

// "at=5s,for=5s" or "after=10MiB,for=5s"; ",cut" closes connections too.
Result<core::OutageConfig> parse_outage(std::string_view text);

// "10Mbps each way, 80ms round trip, ..."
std::string describe(const core::EmulateConfig& link);

}  // namespace isthmus::apps
