// What workers and observers ask of a shard.

#include <algorithm>

#include "server/shard.h"

namespace isthmus::server {
namespace {

constexpr std::size_t kMaxWaitingHellos = 1024;
constexpr std::uint32_t kMaxWorkers = 1 << 16;
constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 32;

void add(const proto::StepTimes& of_a_step, proto::StepTimes& sum) {
  sum.set_compute_us(sum.compute_us() + of_a_step.compute_us());
  sum.set_encode_us(sum.encode_us() + of_a_step.encode_us());
  sum.set_exchange_us(sum.exchange_us() + of_a_step.exchange_us());
  sum.set_barrier_us(sum.barrier_us() + of_a_step.barrier_us());
}

}  // namespace

void Shard::handle_request(transport::Incoming incoming) {
  const transport::PeerName& peer = incoming.from;
  const proto::Message& message = incoming.message;
  if (failure_ && message.kind != proto::Kind::kStatus && message.kind != proto::Kind::kControl)
    return refuse(peer, message.request_id, proto::REFUSE_FAILED, failure_->message());
  switch (message.kind) {
    case proto::Kind::kHello: return on_hello(peer, message);
    case proto::Kind::kInitialize: return on_initialize(peer, message);
    case proto::Kind::kPushPull: return on_push_pull(peer, message);
    case proto::Kind::kNextStep: return on_next_step(peer, message);
    case proto::Kind::kLeave: return on_leave(peer, message);
    case proto::Kind::kSnapshot: return on_snapshot(peer, message);
    case proto::Kind::kStatus: return on_status(peer, message);
    case proto::Kind::kControl: return on_control(peer, message);
    case proto::Kind::kHeartbeat:
      // Whoever holds no lease must learn of it, or would wait for an answer to what an earlier life of this
      // server was asked. To observers and to those who have left, this is a sign of life like the other.
      if (membership_.renew(peer, clock_.now()) == nullptr)
        return refuse(peer, message.request_id, proto::REFUSE_NOT_MEMBER,
                      "this worker holds no lease here; say hello again");
      return send(peer, {proto::Kind::kHeartbeat, message.request_id, {}, {}});
    default:
      return refuse(peer, message.request_id, proto::REFUSE_BAD_REQUEST,
                    std::string(to_string(message.kind)) + " is nothing that a shard answers");
  }
}

void Shard::on_hello(const transport::PeerName& peer, const proto::Message& message) {
  const auto hello = proto::parse_meta<proto::Hello>(message);
  if (!hello.ok())
    return refuse(peer, message.request_id, proto::REFUSE_BAD_REQUEST, hello.status().message());
  if (hello->job() != config_.job)
    return refuse(peer, message.request_id, proto::REFUSE_JOB,
                  "this is job '" + config_.job + "', not '" + hello->job() + "'");
  if (hello->region() != region_config_.name)
    return refuse(peer, message.request_id, proto::REFUSE_REGION,
                  "this is region '" + region_config_.name + "', not '" + hello->region() + "'");
  if (hello->role() == proto::ROLE_OBSERVER && !hello->has_layout() && agreement_)
    return admit(peer, message.request_id, *hello);
  if (hello->role() == proto::ROLE_OBSERVER && !agreement_)
    return refuse(peer, message.request_id, proto::REFUSE_NOT_READY,
                  "no worker has declared the job's tensors yet");

  auto layout = proto::from_table(hello->layout());
  if (!layout.ok())
    return refuse(peer, message.request_id, proto::REFUSE_LAYOUT, "layout: " + layout.status().message());
  if (!agreement_) {
    if (const Status fits = check_message_limit(config_, *layout); !fits.ok())
      return refuse(peer, message.request_id, proto::REFUSE_LAYOUT, fits.message());
    if (waiting_hellos_.size() >= kMaxWaitingHellos)
      return refuse(peer, message.request_id, proto::REFUSE_LIMIT, "too many workers wait");
    waiting_hellos_.emplace_back(peer, message);
    return host_.propose(*std::move(layout));
  }
  if (layout->hash() != agreement_->layout.hash())
    return refuse(peer, message.request_id, proto::REFUSE_LAYOUT,
                  "the layout differs: " + core::Layout::difference(agreement_->layout, *layout));
  admit(peer, message.request_id, *hello);
}

void Shard::admit(const transport::PeerName& peer, std::uint64_t request_id, const proto::Hello& hello) {
  proto::Welcome welcome;
  welcome.set_shard(shard_);
  welcome.set_shards(region_config_.shards());
  welcome.set_initialized(ready());
  welcome.set_start_step(membership_.slowest());
  welcome.set_lease_ms(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(config_.commit.lease).count()));
  if (hello.role() == proto::ROLE_OBSERVER) {
    *welcome.mutable_layout() = proto::to_table(agreement_->layout);
  } else {
    if (hello.worker() >= kMaxWorkers)
      return refuse(peer, request_id, proto::REFUSE_LIMIT,
                    "worker index over " + std::to_string(kMaxWorkers));
    if (draining_) return refuse(peer, request_id, proto::REFUSE_BAD_REQUEST, "the job has ended");
    const Member* member = membership_.join(hello.worker(), hello.incarnation(), peer, clock_.now());
    if (member == nullptr)
      return refuse(peer, request_id, proto::REFUSE_EPOCH,
                    "a later process is worker " + std::to_string(hello.worker()) + " of region " +
                        region_config_.name + " already");
    welcome.set_start_step(member->finished);
    host_.log(name() + ": worker " + std::to_string(hello.worker()) + " joined at step " +
              std::to_string(member->finished));
  }
  send(peer, proto::make_message(proto::Kind::kWelcome, request_id, welcome));
}

void Shard::on_initialize(const transport::PeerName& peer, const proto::Message& message) {
  const auto refuse_it = [&](proto::RefuseReason reason, std::string text) {
    refuse(peer, message.request_id, reason, std::move(text));
  };
  Member* member = membership_.renew(peer, clock_.now());
  if (member == nullptr) return refuse_it(proto::REFUSE_NOT_MEMBER, "say hello first");
  const auto meta = proto::parse_meta<proto::Initialize>(message);
  if (!meta.ok()) return refuse_it(proto::REFUSE_BAD_REQUEST, meta.status().message());
  if (!initialized_) {
    std::vector<std::uint64_t> sizes;
    for (const auto& record : meta->records()) sizes.push_back(record.bytes());
    const auto records = proto::split_records(message, sizes);
    if (!records.ok()) return refuse_it(proto::REFUSE_BAD_REQUEST, records.status().message());
    if (records->size() != slices_.size())
      return refuse_it(proto::REFUSE_BAD_REQUEST,
                       "initial values must come for every slice of the shard at once");
    std::vector<std::vector<float>> values(slices_.size());
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const auto& record = meta->records(static_cast<int>(i));
      const auto codec = compression::find_decoder(static_cast<std::uint8_t>(record.codec()));
      const auto index = index_of(record.slice());
      if (!index || !values[*index].empty() || record.codec() > 255 || !codec.ok())
        return refuse_it(proto::REFUSE_BAD_REQUEST, "initial values: unexpected slice or codec");
      values[*index].resize(slices_[*index]->slice().elements);
      const std::span<const std::byte> pushed = (*records)[i].view;
      const Status status =
          explain((*codec)->decode(pushed, values[*index]), **codec, pushed.size(), values[*index].size());
      if (!status.ok())
        return refuse_it(status.code() == ErrorCode::kInvalidArgument ? proto::REFUSE_NOT_FINITE
                                                                      : proto::REFUSE_BAD_REQUEST,
                         "initial values: " + status.message());
    }
    initialized_ = true;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      // Elsewhere the home's values win, whether they are here already or still on their way.
      if (sync_ && !sync_->is_home(i)) continue;
      std::copy(values[i].begin(), values[i].end(), slices_[i]->parameters().write().begin());
      if (sync_) {
        sync_->initialize(i, clock_.now());
      } else {
        slices_[i]->changed();
      }
    }
  }
  Parked parked;
  parked.peer = peer;
  parked.kind = message.kind;
  parked.request_id = message.request_id;
  parked.worker = member->worker;
  park(std::move(parked));
}

void Shard::on_push_pull(const transport::PeerName& peer, const proto::Message& message) {
  const auto refuse_it = [&](proto::RefuseReason reason, std::string text) {
    refuse(peer, message.request_id, reason, std::move(text));
  };
  Member* member = membership_.renew(peer, clock_.now());
  if (member == nullptr)
    return refuse_it(proto::REFUSE_NOT_MEMBER, "this worker holds no lease here; say hello again");
  if (!ready()) return refuse_it(proto::REFUSE_NOT_READY, "the initial values are not here yet");
  const auto meta = proto::parse_meta<proto::PushPull>(message);
  if (!meta.ok()) return refuse_it(proto::REFUSE_BAD_REQUEST, meta.status().message());
  if (meta->push_size() > 0 && meta->step() != member->finished)
    return refuse_it(proto::REFUSE_BAD_REQUEST, "a push for step " + std::to_string(meta->step()) +
                                                    "; this worker computes step " +
                                                    std::to_string(member->finished));
  if (meta->push_size() > 0 && (meta->samples() == 0 || meta->samples() > kMaxSamples))
    return refuse_it(proto::REFUSE_BAD_REQUEST, "samples must be 1 to 2^32");

  Parked parked;
  parked.peer = peer;
  parked.kind = message.kind;
  parked.request_id = message.request_id;
  parked.worker = member->worker;
  parked.step = meta->step();
  for (const proto::PullRequest& pull : meta->pull()) {
    if (!index_of(pull.slice()))
      return refuse_it(proto::REFUSE_BAD_REQUEST, "slice " + std::to_string(pull.slice()) + " is not here");
    parked.pulls.push_back(pull);
  }
  auto records = check_push(*meta, message);
  if (!records.ok()) {
    const bool not_finite = records.status().code() == ErrorCode::kInvalidArgument;
    ++member->refused;
    ++(not_finite ? refused_not_finite_ : refused_malformed_);
    const std::string text = "worker " + std::to_string(member->worker) + " of region " +
                             region_config_.name + ", step " + std::to_string(meta->step()) + ": " +
                             records.status().message();
    complain("refused a contribution: " + text);
    return refuse_it(not_finite ? proto::REFUSE_NOT_FINITE : proto::REFUSE_BAD_REQUEST, text);
  }
  for (const PushRecord& record : *records) parked.sees.push_back(record.index);
  contribute(*member, meta->step(), *std::move(records));
  park(std::move(parked));
}

void Shard::on_next_step(const transport::PeerName& peer, const proto::Message& message) {
  Member* member = membership_.renew(peer, clock_.now());
  if (member == nullptr)
    return refuse(peer, message.request_id, proto::REFUSE_NOT_MEMBER,
                  "this worker holds no lease here; say hello again");
  const auto meta = proto::parse_meta<proto::NextStep>(message);
  if (!meta.ok()) return refuse(peer, message.request_id, proto::REFUSE_BAD_REQUEST, meta.status().message());
  if (meta->step() != member->finished + 1 && meta->step() != member->finished)
    return refuse(
        peer, message.request_id, proto::REFUSE_BAD_REQUEST,
        "step " + std::to_string(meta->step()) + " does not follow " + std::to_string(member->finished));
  if (meta->step() > member->finished) add(meta->times(), member->times);
  membership_.finish_step(*member, meta->step(), clock_.now());
  grant_more(*member);
  Parked parked;
  parked.peer = peer;
  parked.kind = message.kind;
  parked.request_id = message.request_id;
  parked.worker = member->worker;
  parked.step = meta->step();
  park(std::move(parked));
}

// Decided once a step: the times that it is decided by are those of this moment.
void Shard::grant_more(Member& member) {
  const Member* last = membership_.last();
  if (last == nullptr || policy_->may_proceed(member.finished, membership_.slowest())) return;
  if (member.finished < member.may_run_to || !membership_.leads(member)) return;
  member.may_run_to =
      member.finished + policy_->grant(member.pace, last->pace, member.finished - last->finished);
}

void Shard::on_leave(const transport::PeerName& peer, const proto::Message& message) {
  const auto meta = proto::parse_meta<proto::Leave>(message);
  if (!meta.ok()) return refuse(peer, message.request_id, proto::REFUSE_BAD_REQUEST, meta.status().message());
  Parked parked;
  parked.peer = peer;
  parked.kind = message.kind;
  parked.request_id = message.request_id;
  if (Member* member = membership_.renew(peer, clock_.now())) {
    parked.worker = member->worker;
    host_.log(name() + ": worker " + std::to_string(member->worker) + (meta->done() ? " is done" : " left"));
    membership_.leave(*member, meta->done());
    for (auto& slice : slices_) slice->forget(parked.worker);
  }
  if (meta->wait_for_final()) {
    park(std::move(parked));
  } else {
    send(peer, proto::make_message(proto::Kind::kLeaveReply, message.request_id, proto::LeaveReply()));
  }
}

void Shard::on_control(const transport::PeerName& peer, const proto::Message& message) {
  const auto meta = proto::parse_meta<proto::Control>(message);
  if (!meta.ok()) return refuse(peer, message.request_id, proto::REFUSE_BAD_REQUEST, meta.status().message());
  if (meta->command() == proto::CONTROL_STOP) {
    stop_training_ = true;
  } else if (meta->command() == proto::CONTROL_EXIT) {
    host_.exit_requested();
  } else {
    return refuse(peer, message.request_id, proto::REFUSE_BAD_REQUEST, "unknown control command");
  }
  send(peer, {proto::Kind::kControlReply, message.request_id, {}, {}});
}

}  // namespace isthmus::server
