// One job, as its YAML file describes it: a plain value that every process is given whole.
//
// Threads: a value.
// Memory:  owns its strings.
// Errors:  core/config_file.h makes one from a file and says what is wrong with it.

#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "isthmus/status.h"
#include "isthmus/tensor.h"

namespace isthmus::core {

struct Address {
  std::string host;  // A DNS name, an IPv4 address, or an IPv6 address without its brackets.
  std::uint16_t port = 0;
  std::string to_string() const;  // "frankfurt.example:7100", "[::1]:7100"
  bool is_wildcard() const;       // 0.0.0.0 and ::, which can be bound but not reached.
  bool operator==(const Address&) const = default;
};

// "host:port" or "[IPv6]:port", port 1 to 65535; kInvalidArgument says what is wrong with another text.
Result<Address> parse_address(std::string_view text);

struct ServerConfig {
  Address lan;       // Advertised to workers. Shard i answers on lan.port + i.
  Address wan;       // Advertised to other regions. No host: not given, which one region alone may do.
  Address lan_bind;  // Bound; the same as `lan` unless given.
  Address wan_bind;  // Bound; the same as `wan` unless given.
  std::optional<Address> http = {};  // Bound: /metrics and /healthz.
  std::uint32_t shards = 1;
};

struct RegionConfig {
  std::string name;
  std::uint32_t workers = 1;  // Expected at the start; membership is by lease afterwards.
  std::vector<ServerConfig> servers;

  std::uint32_t shards() const;  // Of all its servers together.
};

enum class CommitPolicyKind { kBsp, kSsp, kDssp, kAsync };
// Delay compensation: what a gradient would have been at the parameters as they are now.
struct CompensationConfig {
  float lambda = 0.04f;   // How much of the second-order term.
  bool adaptive = false;  // Divided by the root of the gradient's running mean square.
  float decay = 0.95f;    // adaptive: of that mean. [0, 1)
};
struct CommitConfig {
  CommitPolicyKind policy = CommitPolicyKind::kBsp;
  Step staleness = 3;         // ssp, dssp: how far a worker may be ahead. [0, 2^32)
  Step most_staleness = 15;   // dssp: and how far where that saves it waiting. At least `staleness`.
  double least_weight = 1.0;  // Not bsp: a gradient t commits old counts 1 / t, but this at least. (0, 1]
  std::optional<CompensationConfig> compensation = {};  // Not bsp.
  Duration lease = std::chrono::seconds(10);            // A silent worker is dropped after this.
};

enum class OptimizerKind { kSgd, kMomentum, kNesterov, kAdagrad, kAdam, kAdamw, kYogi, kLamb };
enum class ScheduleKind { kConstant, kLinear, kCosine, kStep, kInverseSqrt };
// Of what a worker sends: a gradient that is longer is scaled down to this length. 0: none is.
struct ClipConfig {
  float norm = 0.0f;         // Of all tensors together,
  float tensor_norm = 0.0f;  // and before that of each.
};
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  float learning_rate = 0.01f;
  float momentum = 0.9f;      // momentum, nesterov
  float beta1 = 0.9f;         // adam, adamw, yogi, lamb
  float beta2 = 0.999f;       // the same
  float epsilon = 1e-8f;      // the same, and adagrad
  float weight_decay = 0.0f;  // adamw, lamb: decoupled from the gradient; else added to it
  ClipConfig clip = {};
  ScheduleKind schedule = ScheduleKind::kConstant;
  std::uint64_t warmup_steps = 0;    // Before the schedule: up to the learning rate, in a line.
  std::uint64_t schedule_steps = 0;  // linear, cosine: until `final_fraction`; step: between drops;
                                     // inverse_sqrt: until 1 / sqrt 2 is left
  double final_fraction = 0.0;       // linear, cosine: share of learning_rate at the end
  float decay_factor = 0.1f;         // step: factor at each drop
};

enum class SyncStrategy { kOuter, kLockstep };
// kUndivided: contributions add up instead of being averaged (gradients scaled beforehand; counters).
enum class RegionWeight { kSamples, kEqual, kUndivided };
enum class HardBoundAction { kHalt, kContinue };
struct SyncConfig {
  SyncStrategy strategy = SyncStrategy::kOuter;
  Step every_steps = 8;    // Of the region's slowest living worker; 0: by time alone.
  Duration every_time{0};  // 0: by steps alone.
  RegionWeight weight = RegionWeight::kSamples;
  Duration deadline = std::chrono::seconds(5);  // A round closes without the late after this.
  Step hard_staleness = 256;                    // Steps ahead of the slowest region.
  HardBoundAction then = HardBoundAction::kHalt;
};

enum class CodecKind { kFp32, kFp16, kBf16, kInt8, kInt4, kFp4, kSign, kTopk, kRandk };
enum class KeptValues { kFp32, kFp16, kInt8 };
enum class Rounding { kNearest, kStochastic };
struct CodecConfig {
  CodecKind kind = CodecKind::kFp32;
  double keep = 0.01;                      // topk, randk: share of the elements kept. (0, 1]
  KeptValues values = KeptValues::kFp16;   // topk, randk: how those travel.
  Rounding rounding = Rounding::kNearest;  // int8, int4
  bool rotate = false;  // int4: mixes elements first, so that none stands out of its block.
};
// Of workers' gradients: compression.lan.deep (worker/deep_compression.h).
struct DeepConfig {
  double keep = 0.01;
  float momentum = 0.9f;
  Step warmup_steps = 0;
};
struct CompressionConfig {
  CodecConfig lan;
  CodecConfig wan{CodecKind::kTopk, 0.01};
  std::optional<DeepConfig> deep;             // Workers' gradients, instead of `lan`'s codec.
  std::uint64_t dense_below_elements = 1024;  // WAN: tensors smaller than this travel as fp32.
};

struct OutageConfig {
  Duration at{0};                 // Since the relay started, or ...
  std::uint64_t after_bytes = 0;  // ... once this many bytes passed in one direction (if not 0).
  Duration length{0};
  bool cut = false;  // true: connections are closed too; false: bytes stand still.
};
struct EmulateConfig {
  std::uint64_t rate_bytes_per_sec = 0;  // Each way. 0: unlimited.
  Duration rtt{0};
  Duration jitter{0};                   // Each way, uniform in [0, jitter], order kept.
  std::uint64_t queue_bytes = 1 << 20;  // Waiting for the rate; a full queue stops reading.
  std::vector<OutageConfig> outages{};
  std::string trace{};  // File of "seconds rate" lines; empty: constant rate.
};
struct LinksConfig {
  std::uint32_t streams = 1;  // TLS connections a link. [1, 64]
  Duration heartbeat = std::chrono::milliseconds(500);
  Duration silence = std::chrono::seconds(5);  // A link that brings nothing for this is redialled.
  std::optional<EmulateConfig> emulate;        // `isthmus train` only.
};

struct SecurityConfig {
  std::string directory;  // keys/JOB unless given.
  bool plaintext = false;
};

enum class SplitKind { kIid, kDirichlet };
struct DataConfig {
  std::string set = "fashion-mnist";  // "fashion-mnist" or "text"
  std::string path;                   // fashion-mnist: its folder; text: a UTF-8 file.
  SplitKind split = SplitKind::kIid;
  double alpha = 0.5;  // dirichlet
};
struct SyntheticConfig {
  std::uint64_t tensors = 4;
  std::uint64_t elements = 65536;  // Of each tensor.
  float gradient = -1.0f;          // What each worker pushes for every element.
  Duration step_time{0};           // How long one step takes ...
  bool spin = false;               // ... by spinning (true) or by sleeping.
  std::uint64_t nan_at_step = 0;   // Pushes NaN at this step of worker 0 of the first region; 0: never.
};
struct StopConfig {
  std::optional<Step> steps;       // Of each worker.
  std::optional<double> accuracy;  // Of the shared model, in [0, 1].
  std::optional<Duration> time;    // Of training.
};
struct TrainerConfig {
  std::string model = "mlp";  // mlp, cnn, charlm, synthetic, custom
  DataConfig data;
  SyntheticConfig synthetic;
  std::uint32_t batch = 64;     // Samples of each worker in each step.
  std::uint32_t sequence = 64;  // charlm: characters of one sample.
  Step evaluate_every = 500;    // Steps of the slowest region between evaluations; 0: at the end only.
  StopConfig stop;
};

struct CheckpointConfig {
  std::string directory;   // run/JOB/checkpoints unless given. A folder for each server is made in it.
  Step every_steps = 0;    // Of the slowest worker; 0: by time alone.
  Duration every_time{0};  // 0: by steps alone.
  std::uint32_t keep = 3;  // The newest ones. At least 1.
};

// run/JOB/checkpoints
std::string default_checkpoint_directory(const std::string& job);

struct LimitsConfig {
  std::uint64_t message_bytes = 256ull << 20;  // The largest message accepted.
  Duration operation_timeout = std::chrono::seconds(30);
};

// What the config file calls the values of an enum, in the order of its enumerators.
std::span<const std::string_view> names_of(CommitPolicyKind);
std::span<const std::string_view> names_of(OptimizerKind);
std::span<const std::string_view> names_of(ScheduleKind);
std::span<const std::string_view> names_of(SyncStrategy);
std::span<const std::string_view> names_of(RegionWeight);
std::span<const std::string_view> names_of(HardBoundAction);
std::span<const std::string_view> names_of(CodecKind);
std::span<const std::string_view> names_of(KeptValues);
std::span<const std::string_view> names_of(Rounding);
std::span<const std::string_view> names_of(SplitKind);

template <typename E>
requires requires(E value) {
  { names_of(value) } -> std::same_as<std::span<const std::string_view>>;
}
std::string_view to_string(E value) { return names_of(value)[static_cast<std::size_t>(value)]; }

struct JobConfig {
  std::string job;
  std::uint64_t seed = 1;
  std::vector<RegionConfig> regions;
  CommitConfig commit;
  OptimizerConfig optimizer;
  SyncConfig sync;
  CompressionConfig compression;
  LinksConfig links;
  SecurityConfig security;
  TrainerConfig trainer;
  std::optional<CheckpointConfig> checkpoint = {};
  LimitsConfig limits;
  std::uint64_t slice_elements = 256 * 1024;  // The largest slice.

  // nullptr when there is none of that name.
  const RegionConfig* find_region(std::string_view name) const;
};

}  // namespace isthmus::core
