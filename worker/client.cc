#include "isthmus/client.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "compression/codec.h"
#include "core/random.h"
#include "worker/deep_compression.h"
#include "worker/io_thread.h"
#include "worker/requests.h"
#include "worker/shards.h"
#include "worker/snapshot.h"

namespace isthmus {
namespace worker {
namespace {

// The last words of a client must not hold up whoever destroys it.
constexpr std::chrono::milliseconds kLinger(200);

core::CodecConfig codec_of(GradientCodec codec) {
  switch (codec) {
    case GradientCodec::kFp32: return {core::CodecKind::kFp32};
    case GradientCodec::kFp16: return {core::CodecKind::kFp16};
    case GradientCodec::kBf16: return {core::CodecKind::kBf16};
    case GradientCodec::kInt8: return {core::CodecKind::kInt8};
    case GradientCodec::kInt8Stochastic:
      return {.kind = core::CodecKind::kInt8, .rounding = core::Rounding::kStochastic};
  }
  return {core::CodecKind::kFp32};
}

// The same in every life and every run, so that a run can be repeated.
std::uint64_t key_of(const ClientConfig& config) {
  std::uint64_t key = config.worker;
  for (const char letter : config.region) key = core::mix_key(key, 0, static_cast<unsigned char>(letter));
  return key;
}

class RemoteClient final : public Client {
 public:
  RemoteClient(const ClientConfig& config, bool is_worker, ShardedLayout layout, std::unique_ptr<IoThread> io)
      : is_worker_(is_worker),
        timeout_(config.timeout),
        barrier_timeout_(config.barrier_timeout),
        layout_(std::move(layout)),
        codec_(compression::make_codec(codec_of(config.codec))),
        key_(key_of(config)),
        clip_(config.clip),
        deep_(config.deep && is_worker ? std::make_unique<DeepCompression>(layout_.layout(), *config.deep)
                                       : nullptr),
        io_(std::move(io)) {}

  std::span<const TensorSpec> tensors() const noexcept override { return layout_.layout().tensors(); }
  Step step() const noexcept override { return io_->step(); }

  Status create(std::span<const Gradient> initial) override {
    // In another region, the values of the slices' homes have to come over the WAN first.
    return submit(proto::Kind::kInitialize, barrier_timeout_, make_initialize(layout_, initial)).wait();
  }
  Pending push(std::span<const Gradient> gradients, std::uint64_t samples) override {
    return push_pull(gradients, samples, {});
  }
  Pending pull(std::span<const Parameters> parameters) override { return push_pull({}, 0, parameters); }
  Pending push_pull(std::span<const Gradient> gradients, std::uint64_t samples,
                    std::span<const Parameters> parameters) override {
    const core::TimePoint begun = clock_.now();
    auto parts = make_push_pull(layout_, *codec_, gradients, samples, parameters,
                                {.key = key_, .records = step()}, deep_.get(), clip_);
    timer_->add(StepTimer::Part::kEncode, clock_.now() - begun);
    return submit(proto::Kind::kPushPull, barrier_timeout_, std::move(parts));
  }
  Status next_step() override {
    return submit(proto::Kind::kNextStep, barrier_timeout_, make_parts(layout_.shards())).wait();
  }
  Status finish(bool wait_for_final) override {
    proto::Leave leave;
    leave.set_done(true);
    leave.set_wait_for_final(wait_for_final);
    return submit(proto::Kind::kLeave, wait_for_final ? barrier_timeout_ : timeout_,
                  make_parts(layout_.shards(), leave.SerializeAsString()))
        .wait();
  }
  Status snapshot(Snapshot which, std::span<const Parameters> parameters, Step* step) override {
    return read_snapshot(
        which, layout_, parameters, [this](const proto::Snapshot& question) { return ask(question); }, step);
  }

 private:
  Pending submit(proto::Kind kind, core::Duration limit, Result<std::vector<Part>> parts) {
    const auto operation = std::make_shared<Operation>(kind, limit, io_->inbox());
    operation->timer = timer_;
    if (kind == proto::Kind::kNextStep) operation->times = timer_->take(clock_.now());
    if (!is_worker_ && kind != proto::Kind::kSnapshot) {
      operation->end({ErrorCode::kInvalidArgument, "an observer only reads snapshots"});
    } else if (!parts.ok()) {
      operation->end(std::move(parts).status());
    } else {
      operation->parts = std::move(*parts);
      io_->submit(operation);
    }
    return Pending(operation);
  }

  Result<std::vector<proto::Message>> ask(const proto::Snapshot& question) {
    const auto operation =
        std::make_shared<Operation>(proto::Kind::kSnapshot, barrier_timeout_, io_->inbox());
    operation->parts = make_parts(layout_.shards(), question.SerializeAsString());
    io_->submit(operation);
    operation->block_until_done();
    if (!operation->status.ok()) return operation->status;
    std::vector<proto::Message> answers;
    for (Part& part : operation->parts) answers.push_back(std::move(part.reply));
    return answers;
  }

  const bool is_worker_;
  const core::Duration timeout_;
  const core::Duration barrier_timeout_;
  const ShardedLayout layout_;
  const std::unique_ptr<const compression::Codec> codec_;
  const std::uint64_t key_;
  const ClipConfig clip_;
  const std::unique_ptr<DeepCompression> deep_;
  const core::SystemClock clock_;
  const std::shared_ptr<StepTimer> timer_ = std::make_shared<StepTimer>(clock_.now());
  const std::unique_ptr<IoThread> io_;
};

proto::Hello make_hello(const ClientConfig& config, proto::Role role,
                        const std::optional<core::Layout>& layout) {
  proto::Hello hello;
  hello.set_job(config.job);
  hello.set_region(config.region);
  hello.set_role(role);
  hello.set_worker(config.worker);
  // A later life of the same worker has a greater one.
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  hello.set_incarnation(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count()));
  if (layout) *hello.mutable_layout() = proto::to_table(*layout);
  return hello;
}

// Says Hello to all shards and waits until each has answered; gives their Welcomes.
Result<std::vector<proto::Welcome>> join(IoThread& io, std::size_t shards, core::Duration timeout) {
  const auto operation = std::make_shared<Operation>(proto::Kind::kHello, timeout, io.inbox());
  operation->parts = make_parts(static_cast<std::uint32_t>(shards));
  io.submit(operation);
  operation->block_until_done();
  if (!operation->status.ok()) return operation->status;
  std::vector<proto::Welcome> welcomes;
  for (const Part& part : operation->parts) {
    auto welcome = proto::parse_meta<proto::Welcome>(part.reply);
    if (!welcome.ok()) return std::move(welcome).status();
    welcomes.push_back(std::move(*welcome));
  }
  return welcomes;
}

// The layout that all shards name.
Result<core::Layout> agreed_layout(std::span<const proto::Welcome> welcomes) {
  auto layout = proto::from_table(welcomes.front().layout());
  for (std::size_t i = 1; layout.ok() && i < welcomes.size(); ++i) {
    auto other = proto::from_table(welcomes[i].layout());
    if (!other.ok()) return other;
    if (other->hash() != layout->hash())
      return Status(ErrorCode::kProtocol, "shards 0 and " + std::to_string(i) + " have different layouts: " +
                                              core::Layout::difference(*layout, *other) +
                                              " ('here' is shard 0)");
  }
  return layout;
}

// All that a shard holds must fit into one message.
Status check_size(const ShardedLayout& layout, std::uint64_t max_message_bytes) {
  const std::uint64_t bytes = layout.most_elements() * sizeof(float);
  if (bytes <= max_message_bytes) return {};
  return {ErrorCode::kInvalidArgument,
          "a shard would hold " + std::to_string(bytes) + " bytes, but a message carries at most " +
              std::to_string(max_message_bytes) +
              ": use more shards, or raise max_message_bytes here and at the servers"};
}

Result<std::unique_ptr<Client>> make_client(const ClientConfig& config, proto::Role role) {
  ISTHMUS_RETURN_IF_ERROR(check(config));
  std::optional<core::Layout> layout;
  if (role == proto::ROLE_WORKER || !config.tensors.empty()) {
    auto made = core::Layout::create(config.tensors, config.slice_elements);
    if (!made.ok()) return std::move(made).status();
    layout = std::move(*made);
  }
  const std::vector<ShardAddress> shards = shards_of(config);
  const auto count = static_cast<std::uint32_t>(shards.size());
  if (layout) ISTHMUS_RETURN_IF_ERROR(check_size(ShardedLayout(*layout, count), config.max_message_bytes));

  SessionOptions session{make_hello(config, role, layout), {}, config.timeout, config.log};
  for (const ShardAddress& shard : shards) session.shards.push_back(shard.name);
  auto io = IoThread::start(shards, std::move(session),
                            {.max_message_bytes = config.max_message_bytes, .linger = kLinger});
  if (!io.ok()) return std::move(io).status();
  auto welcomes = join(**io, shards.size(), config.timeout);
  if (!welcomes.ok()) return std::move(welcomes).status();
  if (!layout) {
    auto theirs = agreed_layout(*welcomes);
    if (!theirs.ok()) return std::move(theirs).status();
    layout = std::move(*theirs);
    ISTHMUS_RETURN_IF_ERROR(check_size(ShardedLayout(*layout, count), config.max_message_bytes));
  }
  return std::unique_ptr<Client>(std::make_unique<RemoteClient>(
      config, role == proto::ROLE_WORKER, ShardedLayout(std::move(*layout), count), std::move(*io)));
}

}  // namespace
}  // namespace worker

Result<std::unique_ptr<Client>> Client::connect(const ClientConfig& config) {
  return worker::make_client(config, proto::ROLE_WORKER);
}

Result<std::unique_ptr<Client>> Client::observe(const ClientConfig& config) {
  return worker::make_client(config, proto::ROLE_OBSERVER);
}

}  // namespace isthmus
