#include "core/job_config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

namespace isthmus::core {
namespace {

constexpr std::size_t kMaxHost = 253;  // RFC 1035.

Status bad_address(std::string_view text, const std::string& what) {
  return Status(ErrorCode::kInvalidArgument, "'" + std::string(text.substr(0, kMaxHost + 8)) + "' " + what);
}

bool is_ipv6(std::string_view host) {
  const bool letters = std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == ':' || c == '.' || c == '%' || c == '-';
  });
  if (!letters) return false;
  in6_addr parsed{};
  return inet_pton(AF_INET6, std::string(host.substr(0, host.find('%'))).c_str(), &parsed) == 1;
}

// A name of letters, digits, hyphens and points; when it could only be an IPv4 address, a right one.
bool is_name_or_ipv4(std::string_view host) {
  if (host.empty() || host.size() > kMaxHost) return false;
  const bool letters = std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
  if (!letters) return false;
  in_addr parsed{};
  return host.find_first_not_of("0123456789.") != std::string_view::npos ||
         inet_pton(AF_INET, std::string(host).c_str(), &parsed) == 1;
}

template <typename E>
constexpr std::size_t index(E value) {
  return static_cast<std::size_t>(value);
}

constexpr std::string_view kPolicies[] = {"bsp", "ssp", "dssp", "async"};
constexpr std::string_view kOptimizers[] = {"sgd",  "momentum", "nesterov", "adagrad",
                                            "adam", "adamw",    "yogi",     "lamb"};
constexpr std::string_view kSchedules[] = {"constant", "linear", "cosine", "step", "inverse_sqrt"};
constexpr std::string_view kStrategies[] = {"outer", "lockstep"};
constexpr std::string_view kWeights[] = {"samples", "equal", "undivided"};
constexpr std::string_view kActions[] = {"halt", "continue"};
constexpr std::string_view kCodecs[] = {"fp32", "fp16", "bf16", "int8", "int4",
                                        "fp4",  "sign", "topk", "randk"};
constexpr std::string_view kValues[] = {"fp32", "fp16", "int8"};
constexpr std::string_view kRoundings[] = {"nearest", "stochastic"};
constexpr std::string_view kSplits[] = {"iid", "dirichlet"};

static_assert(std::size(kPolicies) == index(CommitPolicyKind::kAsync) + 1);
static_assert(std::size(kOptimizers) == index(OptimizerKind::kLamb) + 1);
static_assert(std::size(kSchedules) == index(ScheduleKind::kInverseSqrt) + 1);
static_assert(std::size(kStrategies) == index(SyncStrategy::kLockstep) + 1);
static_assert(std::size(kWeights) == index(RegionWeight::kUndivided) + 1);
static_assert(std::size(kActions) == index(HardBoundAction::kContinue) + 1);
static_assert(std::size(kCodecs) == index(CodecKind::kRandk) + 1);
static_assert(std::size(kValues) == index(KeptValues::kInt8) + 1);
static_assert(std::size(kRoundings) == index(Rounding::kStochastic) + 1);
static_assert(std::size(kSplits) == index(SplitKind::kDirichlet) + 1);

}  // namespace

std::string Address::to_string() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool Address::is_wildcard() const { return host == "0.0.0.0" || host == "::"; }

Result<Address> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) {
    return bad_address(text, "has no port; write host:port, for example 10.0.0.5:7100");
  }
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!is_ipv6(host)) return bad_address(text, "has no IPv6 address in its brackets");
  } else if (host.find(':') != std::string_view::npos) {
    return bad_address(text,
                       "has more than one ':'; put an IPv6 address in brackets, for example [::1]:7100");
  } else if (!is_name_or_ipv4(host)) {
    return bad_address(text, "does not name a host; write host:port, for example 10.0.0.5:7100");
  }
  Result<std::uint64_t> port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return bad_address(text, "has no port between 1 and 65535");
  return Address{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::uint32_t RegionConfig::shards() const {
  std::uint32_t sum = 0;
  for (const ServerConfig& server : servers) sum += server.shards;
  return sum;
}

const RegionConfig* JobConfig::find_region(std::string_view name) const {
  const auto found =
      std::find_if(regions.begin(), regions.end(), [&](const RegionConfig& r) { return r.name == name; });
  return found == regions.end() ? nullptr : &*found;
}

std::span<const std::string_view> names_of(CommitPolicyKind) { return kPolicies; }
std::span<const std::string_view> names_of(OptimizerKind) { return kOptimizers; }
std::span<const std::string_view> names_of(ScheduleKind) { return kSchedules; }
std::span<const std::string_view> names_of(SyncStrategy) { return kStrategies; }
std::span<const std::string_view> names_of(RegionWeight) { return kWeights; }
std::span<const std::string_view> names_of(HardBoundAction) { return kActions; }
std::span<const std::string_view> names_of(CodecKind) { return kCodecs; }
std::span<const std::string_view> names_of(KeptValues) { return kValues; }
std::span<const std::string_view> names_of(Rounding) { return kRoundings; }
std::span<const std::string_view> names_of(SplitKind) { return kSplits; }

std::string default_checkpoint_directory(const std::string& job) { return "run/" + job + "/checkpoints"; }

}  // namespace isthmus::core
