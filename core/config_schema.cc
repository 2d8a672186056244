#include "core/config_schema.h"

#include <limits>

namespace isthmus::core {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMaxSteps = 1'000'000'000'000;
constexpr std::uint64_t kMaxStaleness = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kGi = 1ull << 30;
constexpr float kAlmostOne = 0.999999f;
constexpr float kTiny = 1e-12f;
constexpr float kHuge = 1e12f;

constexpr std::string_view kModels[] = {"mlp", "cnn", "charlm", "synthetic", "custom"};
constexpr std::string_view kDataSets[] = {"fashion-mnist", "text"};

void visit_server(ConfigFields& f, ServerConfig& server) {
  f.require("lan", "give the address that workers reach, for example 'lan: 10.0.0.5:7100'");
  f.address("lan", server.lan);
  if (f.has("wan", !server.wan.host.empty())) f.address("wan", server.wan);
  const auto bind = [&](std::string_view key, Address& bound, const Address& advertised) {
    if (f.has(key, !bound.host.empty() && bound != advertised)) {
      f.address(key, bound);
    } else {
      bound = advertised;
    }
  };
  bind("lan_bind", server.lan_bind, server.lan);
  bind("wan_bind", server.wan_bind, server.wan);
  f.small_count("shards", server.shards, {{1, 64}});
  f.maybe("http", server.http, [&](Address& http) { f.address("http", http); });
}

void visit_region(ConfigFields& f, RegionConfig& region) {
  f.require("name", "every region needs a name, for example 'name: frankfurt'");
  f.name("name", region.name, 32);
  f.small_count("workers", region.workers, {{1, 4096}});
  f.require("servers", "every region needs a server, for example 'servers: [{ lan: 10.0.0.5:7100 }]'");
  f.list("servers", region.servers, {1, 64}, [&](ServerConfig& server) { visit_server(f, server); });
}

void visit_commit(ConfigFields& f, CommitConfig& commit) {
  f.choice("policy", commit.policy);
  const bool dynamic = commit.policy == CommitPolicyKind::kDssp;
  if (f.applies("staleness", dynamic || commit.policy == CommitPolicyKind::kSsp, "policy: ssp or dssp"))
    f.count("staleness", commit.staleness, {{0, kMaxStaleness}, "steps"});
  if (f.applies("most_staleness", dynamic, "policy: dssp"))
    f.count("most_staleness", commit.most_staleness, {{0, kMaxStaleness}, "steps"});
  const bool at_once = commit.policy != CommitPolicyKind::kBsp;
  if (f.applies("least_weight", at_once, "policy: ssp, dssp or async"))
    f.share("least_weight", commit.least_weight, {1e-6, 1.0});
  if (f.applies("compensation", at_once, "policy: ssp, dssp or async")) {
    f.maybe("compensation", commit.compensation, [&](CompensationConfig& compensation) {
      f.map("compensation", [&] {
        f.number("lambda", compensation.lambda, {kTiny, 1000.0f});
        f.flag("adaptive", compensation.adaptive);
        if (f.applies("decay", compensation.adaptive, "adaptive: true"))
          f.number("decay", compensation.decay, {0.0f, kAlmostOne});
      });
    });
  }
  f.duration("lease", commit.lease, {milliseconds(100), hours(1)});
}

void visit_schedule(ConfigFields& f, OptimizerConfig& optimizer) {
  const ScheduleKind kind = optimizer.schedule;
  const bool drops = kind == ScheduleKind::kStep;
  const bool falls = kind == ScheduleKind::kLinear || kind == ScheduleKind::kCosine;
  f.count("warmup", optimizer.warmup_steps, {{0, kMaxSteps}, "steps", true});
  if (f.applies("steps", kind != ScheduleKind::kConstant, "kind: linear, cosine, step or inverse_sqrt")) {
    f.require("steps", "say over how many steps, for example 'steps: 3000'");
    f.count("steps", optimizer.schedule_steps, {{1, kMaxSteps}, "steps", true});
  }
  if (f.applies("final", falls, "kind: linear or cosine"))
    f.share("final", optimizer.final_fraction, {0.0, 1.0});
  if (f.applies("factor", drops, "kind: step")) f.number("factor", optimizer.decay_factor, {kTiny, 1.0f});
}

void visit_optimizer(ConfigFields& f, OptimizerConfig& optimizer) {
  f.choice("kind", optimizer.kind);
  const OptimizerKind kind = optimizer.kind;
  const bool velocity = kind == OptimizerKind::kMomentum || kind == OptimizerKind::kNesterov;
  const bool moments = kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamw ||
                       kind == OptimizerKind::kYogi || kind == OptimizerKind::kLamb;
  f.number("learning_rate", optimizer.learning_rate, {kTiny, 1000.0f});
  if (f.applies("momentum", velocity, "kind: momentum or nesterov")) {
    f.number("momentum", optimizer.momentum, {0.0f, kAlmostOne});
  }
  constexpr std::string_view with_moments = "kind: adam, adamw, yogi or lamb";
  if (f.applies("beta1", moments, with_moments)) f.number("beta1", optimizer.beta1, {0.0f, kAlmostOne});
  if (f.applies("beta2", moments, with_moments)) f.number("beta2", optimizer.beta2, {0.0f, kAlmostOne});
  if (f.applies("epsilon", moments || kind == OptimizerKind::kAdagrad,
                "kind: adagrad, adam, adamw, yogi or lamb"))
    f.number("epsilon", optimizer.epsilon, {kTiny, 1.0f});
  f.number("weight_decay", optimizer.weight_decay, {0.0f, 1.0f});
  f.map("clip", [&] {
    f.number("norm", optimizer.clip.norm, {0.0f, kHuge});
    f.number("tensor_norm", optimizer.clip.tensor_norm, {0.0f, kHuge});
  });
  f.map(
      "schedule",
      [&] {
        f.choice("kind", optimizer.schedule);
        visit_schedule(f, optimizer);
      },
      "kind");
}

void visit_sync(ConfigFields& f, SyncConfig& sync) {
  f.choice("strategy", sync.strategy);
  f.every("every", sync.every_steps, sync.every_time, kMaxStaleness, {milliseconds(1), hours(24)});
  f.choice("weight", sync.weight);
  f.duration("deadline", sync.deadline, {milliseconds(10), hours(1)});
  f.map("staleness", [&] {
    f.count("hard", sync.hard_staleness, {{1, kMaxStaleness}, "steps"});
    f.choice("then", sync.then);
  });
}

void visit_codec(ConfigFields& f, CodecConfig& codec) {
  f.choice("codec", codec.kind);
  const bool sparse = codec.kind == CodecKind::kTopk || codec.kind == CodecKind::kRandk;
  const bool rounds = codec.kind == CodecKind::kInt8 || codec.kind == CodecKind::kInt4;
  if (f.applies("keep", sparse, "codec: topk or randk")) f.share("keep", codec.keep, {1e-6, 1.0});
  if (f.applies("values", sparse, "codec: topk or randk")) f.choice("values", codec.values);
  if (f.applies("rounding", rounds, "codec: int8 or int4")) f.choice("rounding", codec.rounding);
  if (f.applies("rotate", codec.kind == CodecKind::kInt4, "codec: int4")) f.flag("rotate", codec.rotate);
}

void visit_compression(ConfigFields& f, CompressionConfig& compression) {
  f.map(
      "lan", [&] { visit_codec(f, compression.lan); }, "codec");
  f.map(
      "wan", [&] { visit_codec(f, compression.wan); }, "codec");
  f.maybe("deep", compression.deep, [&](DeepConfig& deep) {
    f.map("deep", [&] {
      f.share("keep", deep.keep, {1e-6, 1.0});
      f.number("momentum", deep.momentum, {0.0f, 0.9999f});
      f.count("warmup", deep.warmup_steps, {{0, kMaxStaleness}, "steps"});
    });
  });
  f.count("dense_below", compression.dense_below_elements, {{0, kMaxStaleness}, "elements"});
}

void visit_outage(ConfigFields& f, OutageConfig& outage) {
  const bool by_bytes = outage.after_bytes != 0;
  if (f.has("at", !by_bytes)) f.duration("at", outage.at, {Duration::zero(), hours(1000)});
  if (f.has("after", by_bytes)) f.bytes("after", outage.after_bytes, {1, kGi * 1024});
  f.require("for", "say how long the link is out, for example 'for: 5s'");
  f.duration("for", outage.length, {milliseconds(1), hours(1000)});
  f.flag("cut", outage.cut);
}

void visit_emulate(ConfigFields& f, EmulateConfig& emulate) {
  if (f.has("rate", emulate.rate_bytes_per_sec != 0)) {
    f.rate("rate", emulate.rate_bytes_per_sec, {125, 125'000'000'000});
  }
  f.duration("rtt", emulate.rtt, {Duration::zero(), seconds(60)});
  f.duration("jitter", emulate.jitter, {Duration::zero(), seconds(60)});
  f.bytes("queue", emulate.queue_bytes, {1024, kGi});
  if (f.has("outages", !emulate.outages.empty())) {
    f.list("outages", emulate.outages, {0, 1000}, [&](OutageConfig& outage) { visit_outage(f, outage); });
  }
  if (f.has("trace", !emulate.trace.empty())) f.text("trace", emulate.trace);
}

void visit_links(ConfigFields& f, LinksConfig& links) {
  f.small_count("streams", links.streams, {{1, 64}});
  f.duration("heartbeat", links.heartbeat, {milliseconds(10), seconds(60)});
  f.duration("silence", links.silence, {milliseconds(20), hours(1)});
  f.maybe("emulate", links.emulate,
          [&](EmulateConfig& emulate) { f.map("emulate", [&] { visit_emulate(f, emulate); }); });
}

void visit_data(ConfigFields& f, DataConfig& data) {
  f.choice("set", data.set, kDataSets);
  if (data.set == "text")
    f.require("path", "name the text file to learn from, for example 'path: README.md'");
  if (f.has("path", !data.path.empty())) f.text("path", data.path);
  f.choice("split", data.split);
  if (f.applies("alpha", data.split == SplitKind::kDirichlet, "split: dirichlet")) {
    f.number("alpha", data.alpha, {1e-3, 1e6});
  }
}

void visit_synthetic(ConfigFields& f, SyntheticConfig& synthetic) {
  f.count("tensors", synthetic.tensors, {{1, 10'000}});
  f.count("elements", synthetic.elements, {{1, 4 * kGi}, "elements", true});
  f.number("gradient", synthetic.gradient, {-1e6f, 1e6f});
  f.duration("step_time", synthetic.step_time, {Duration::zero(), seconds(60)});
  f.flag("spin", synthetic.spin);
  f.count("nan_at_step", synthetic.nan_at_step, {{0, kMaxSteps}});
}

void visit_stop(ConfigFields& f, StopConfig& stop) {
  f.maybe("steps", stop.steps, [&](Step& steps) {
    f.count("steps", steps, {{1, kMaxSteps}, "steps", true});
  });
  f.maybe("accuracy", stop.accuracy, [&](double& accuracy) { f.share("accuracy", accuracy, {0.0, 1.0}); });
  f.maybe("time", stop.time, [&](Duration& time) {
    f.duration("time", time, {milliseconds(1), hours(10'000)});
  });
}

void visit_trainer(ConfigFields& f, TrainerConfig& trainer) {
  f.choice("model", trainer.model, kModels);
  const bool synthetic = trainer.model == "synthetic";
  if (f.applies("data", !synthetic, "a model other than synthetic")) {
    f.map("data", [&] { visit_data(f, trainer.data); });
  }
  if (f.applies("synthetic", synthetic, "model: synthetic")) {
    f.map("synthetic", [&] { visit_synthetic(f, trainer.synthetic); });
  }
  f.small_count("batch", trainer.batch, {{1, 1 << 20}, "samples", true});
  if (f.applies("sequence", trainer.model == "charlm", "model: charlm")) {
    f.small_count("sequence", trainer.sequence, {{2, 4096}, "characters", true});
  }
  f.count("evaluate_every", trainer.evaluate_every, {{0, kMaxSteps}, "steps"});
  f.map("stop", [&] { visit_stop(f, trainer.stop); });
}

void visit_checkpoint(ConfigFields& f, CheckpointConfig& checkpoint) {
  f.require("every", "say how often, for example 'every: 30s' or 'every: 500 steps'");
  f.every("every", checkpoint.every_steps, checkpoint.every_time, kMaxSteps, {milliseconds(100), hours(240)});
  f.text("directory", checkpoint.directory);
  f.small_count("keep", checkpoint.keep, {{1, 1000}});
}

void visit_limits(ConfigFields& f, LimitsConfig& limits) {
  f.bytes("message", limits.message_bytes, {64 << 10, 2 * kGi});
  f.duration("operation_timeout", limits.operation_timeout, {milliseconds(10), hours(1)});
}

// Notes each key that holds a value, and everything that may be left out.
class KeyLister : public ConfigFields {
 public:
  std::vector<std::string> take() && { return std::move(keys_); }

  void require(Key, std::string_view) override {}
  bool has(Key, bool) override { return true; }
  bool applies(Key, bool, std::string_view) override { return true; }
  void text(Key key, std::string&) override { note(key); }
  void name(Key key, std::string&, std::size_t) override { note(key); }
  void flag(Key key, bool&) override { note(key); }
  void count(Key key, std::uint64_t&, const CountRule&) override { note(key); }
  void number(Key key, float&, Range<float>) override { note(key); }
  void number(Key key, double&, Range<double>) override { note(key); }
  void share(Key key, double&, Range<double>) override { note(key); }
  void duration(Key key, Duration&, Range<Duration>) override { note(key); }
  void bytes(Key key, std::uint64_t&, Range<std::uint64_t>) override { note(key); }
  void rate(Key key, std::uint64_t&, Range<std::uint64_t>) override { note(key); }
  void address(Key key, Address&) override { note(key); }
  void every(Key key, Step&, Duration&, Step, Range<Duration>) override { note(key); }
  void pick(Key key, std::size_t&, std::span<const std::string_view>) override { note(key); }
  bool open(Key key, std::string_view) override {
    open_.push_back(path() + std::string(key) + ".");
    return true;
  }
  void close() override { open_.pop_back(); }
  std::optional<std::size_t> open_list(Key key, std::size_t, Range<std::size_t>) override {
    open_.push_back(path() + std::string(key) + "[].");
    return 1;
  }
  bool open_item(std::size_t) override {
    open_.push_back(path());
    return true;
  }
  void close_list() override { open_.pop_back(); }

 private:
  std::string path() const { return open_.empty() ? "" : open_.back(); }
  void note(Key key) { keys_.push_back(path() + std::string(key)); }

  std::vector<std::string> open_;
  std::vector<std::string> keys_;
};

}  // namespace

void visit_config(ConfigFields& f, JobConfig& config) {
  f.require("job", "name the job, for example 'job: fashion-mnist'");
  f.name("job", config.job, 64);
  f.count("seed", config.seed, {{0, std::numeric_limits<std::int64_t>::max()}});
  f.require("regions", "list the regions; docs/configuration.md shows how");
  f.list("regions", config.regions, {1, 64}, [&](RegionConfig& region) { visit_region(f, region); });
  f.map("commit", [&] { visit_commit(f, config.commit); });
  f.map("optimizer", [&] { visit_optimizer(f, config.optimizer); });
  f.map("sync", [&] { visit_sync(f, config.sync); });
  f.map("compression", [&] { visit_compression(f, config.compression); });
  f.map("links", [&] { visit_links(f, config.links); });
  f.map("security", [&] {
    f.text("directory", config.security.directory);
    f.flag("plaintext", config.security.plaintext);
  });
  f.map("trainer", [&] { visit_trainer(f, config.trainer); });
  f.maybe("checkpoint", config.checkpoint, [&](CheckpointConfig& checkpoint) {
    f.map("checkpoint", [&] { visit_checkpoint(f, checkpoint); });
  });
  f.map("limits", [&] { visit_limits(f, config.limits); });
  f.count("slice", config.slice_elements, {{256, 1 << 26}, "elements"});
}

std::vector<std::string> config_keys() {
  JobConfig config;
  KeyLister lister;
  visit_config(lister, config);
  return std::move(lister).take();
}

}  // namespace isthmus::core
