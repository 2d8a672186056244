// What a shard answers, and when: requests that must wait are parked and looked at again whenever anything
// has changed.

#include <algorithm>
#include <cmath>
#include <utility>

#include "isthmus/version.h"
#include "server/shard.h"

namespace isthmus::server {

void Shard::send(const transport::PeerName& peer, proto::Message message) {
  const std::uint64_t request_id = message.request_id;
  const Status status = socket_->send(std::move(message), peer);
  if (status.ok()) return;
  // A peer that is gone, or that reads nothing, loses its answer; its lease ends by itself.
  last_error_ = status.to_string();
  if (status.code() == ErrorCode::kInvalidArgument)
    (void)socket_->send(proto::make_refusal(request_id, proto::REFUSE_LIMIT,
                                            status.message() + "; ask for less at once, or raise "
                                                               "limits.message"),
                        peer);
}

void Shard::refuse(const transport::PeerName& peer, std::uint64_t request_id, proto::RefuseReason reason,
                   std::string text) {
  send(peer, proto::make_refusal(request_id, reason, std::move(text)));
}

void Shard::park(Parked parked) {
  const auto of_this_peer = std::count_if(parked_.begin(), parked_.end(),
                                          [&](const Parked& other) { return other.peer == parked.peer; });
  if (static_cast<std::size_t>(of_this_peer) >= kMaxParkedOfOne)
    return refuse(parked.peer, parked.request_id, proto::REFUSE_LIMIT,
                  "too many requests of this peer wait for their answers");
  parked_.push_back(std::move(parked));
}

void Shard::answer_parked() {
  if (failure_) {
    for (const Parked& parked : std::exchange(parked_, {}))
      refuse(parked.peer, parked.request_id, proto::REFUSE_FAILED, failure_->message());
    return;
  }
  for (auto parked = parked_.begin(); parked != parked_.end();)
    parked = try_answer(*parked) ? parked_.erase(parked) : std::next(parked);
}

bool Shard::try_answer(Parked& parked) {
  switch (parked.kind) {
    case proto::Kind::kInitialize:
      if (!ready()) return false;
      send(parked.peer, {proto::Kind::kInitializeReply, parked.request_id, {}, {}});
      return true;
    case proto::Kind::kPushPull: return answer_push_pull(parked);
    case proto::Kind::kNextStep: {
      proto::NextStepReply reply;
      reply.set_stop(stop_training_.load(std::memory_order_acquire));
      const auto member = membership_.members().find(parked.worker);
      const bool granted = member != membership_.members().end() && parked.step < member->second.may_run_to;
      bool go = granted || policy_->may_proceed(parked.step, membership_.slowest());
      go = go && membership_.started();
      go = go && !(sync_ && sync_->halted(membership_.slowest()));
      for (std::size_t i = 0; go && i < slices_.size(); ++i) go = settled(i);
      if (!go && !reply.stop()) return false;
      send(parked.peer, proto::make_message(proto::Kind::kNextStepReply, parked.request_id, reply));
      return true;
    }
    case proto::Kind::kLeave: {
      if (!drained_) return false;
      proto::LeaveReply reply;
      reply.set_final(true);
      send(parked.peer, proto::make_message(proto::Kind::kLeaveReply, parked.request_id, reply));
      return true;
    }
    default: return answer_snapshot(parked);
  }
}

bool Shard::answer_push_pull(const Parked& parked) {
  for (const std::size_t index : parked.sees) {
    if (policy_->collects() && slices_[index]->committed_step() <= parked.step) return false;
    if (!settled(index)) return false;
  }
  proto::PushPullReply reply;
  proto::Message message;
  for (const proto::PullRequest& pull : parked.pulls) {
    LocalSlice& slice = *slices_[*index_of(pull.slice())];
    slice.pulled_by(parked.worker);
    if (slice.version() == pull.known_version()) continue;
    const core::SharedBytes record = slice.encoded(*lan_codec_);
    proto::Record* entry = reply.add_records();
    entry->set_slice(pull.slice());
    entry->set_bytes(record.size());
    entry->set_codec(static_cast<std::uint32_t>(lan_codec_->id()));
    reply.add_versions(slice.version());
    message.payload.push_back(record);
  }
  message.payload = proto::join_small(std::move(message.payload));
  message.kind = proto::Kind::kPushPullReply;
  message.request_id = parked.request_id;
  message.meta = reply.SerializeAsString();
  send(parked.peer, std::move(message));
  return true;
}

void Shard::on_snapshot(const transport::PeerName& peer, const proto::Message& message) {
  const auto meta = proto::parse_meta<proto::Snapshot>(message);
  if (!meta.ok()) return refuse(peer, message.request_id, proto::REFUSE_BAD_REQUEST, meta.status().message());
  if (!ready())
    return refuse(peer, message.request_id, proto::REFUSE_NOT_READY, "the initial values are not here yet");
  Parked parked;
  parked.peer = peer;
  parked.kind = message.kind;
  parked.request_id = message.request_id;
  parked.step = meta->source();
  parked.round = meta->round();
  parked.captured.resize(slices_.size());
  // One of a kind a peer: whoever asks again has given up on the answer to the first.
  std::erase_if(parked_, [&](const Parked& old) { return old.kind == message.kind && old.peer == peer; });
  park(std::move(parked));
  capture_anchors();
}

// An anchor passes through each round once: a snapshot of a round is taken as it does.
void Shard::capture_anchors() {
  if (!sync_) return;
  for (Parked& parked : parked_) {
    if (parked.kind != proto::Kind::kSnapshot || parked.step != proto::SNAPSHOT_ANCHOR) continue;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      if (!parked.captured[i] && sync_->anchor_id(i).round == parked.round)
        parked.captured[i] = sync_->anchor(i);
    }
  }
}

bool Shard::answer_snapshot(Parked& parked) {
  std::vector<core::VersionedFloats::Reference> now;
  for (const auto& slice : slices_) now.push_back(slice->parameters().share());
  switch (static_cast<proto::SnapshotSource>(parked.step)) {
    case proto::SNAPSHOT_PARAMETERS: return send_values(parked, now), true;
    case proto::SNAPSHOT_OWN: return draining_ ? (send_values(parked, own_before_final_), true) : false;
    case proto::SNAPSHOT_FINAL: return drained_ ? (send_values(parked, now), true) : false;
    case proto::SNAPSHOT_ANCHOR: break;
    default:
      refuse(parked.peer, parked.request_id, proto::REFUSE_BAD_REQUEST, "unknown snapshot source");
      return true;
  }
  if (!sync_ || drained_) return send_values(parked, now), true;
  bool complete = true;
  bool passed = false;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    complete = complete && parked.captured[i] != nullptr;
    passed = passed || (!parked.captured[i] && sync_->anchor_id(i).round > parked.round);
  }
  if (complete) return send_values(parked, parked.captured), true;
  if (!passed) return false;
  proto::SnapshotReply reply;
  reply.set_too_late(true);
  reply.set_newest_round(sync_->counters().newest_round);
  send(parked.peer, proto::make_message(proto::Kind::kSnapshotReply, parked.request_id, reply));
  return true;
}

void Shard::send_values(const Parked& parked, const std::vector<core::VersionedFloats::Reference>& values) {
  proto::SnapshotReply reply;
  reply.set_step(membership_.slowest());
  if (sync_) reply.set_newest_round(sync_->counters().newest_round);
  proto::Message message;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const core::Slice& slice = slices_[i]->slice();
    const auto bytes = std::as_bytes(std::span<const float>(values[i].get(), slice.elements));
    proto::Record* record = reply.add_records();
    record->set_slice(slice.id);
    record->set_bytes(bytes.size());
    record->set_codec(static_cast<std::uint32_t>(compression::CodecId::kFp32));
    message.payload.push_back({values[i], bytes});
  }
  message.payload = proto::join_small(std::move(message.payload));
  message.kind = proto::Kind::kSnapshotReply;
  message.request_id = parked.request_id;
  message.meta = reply.SerializeAsString();
  send(parked.peer, std::move(message));
}

void Shard::add_norms(proto::ShardStatus& status) const {
  double squared = 0;
  for (const auto& slice : slices_) {
    for (const float value : slice->parameters().read()) squared += static_cast<double>(value) * value;
  }
  status.set_parameter_norm(std::sqrt(squared));
  if (sync_) status.set_untold_norm(std::sqrt(sync_->untold_squared()));
}

void Shard::on_status(const transport::PeerName& peer, const proto::Message& message) {
  const auto question = proto::parse_meta<proto::StatusRequest>(message);
  if (!question.ok())
    return refuse(peer, message.request_id, proto::REFUSE_BAD_REQUEST, question.status().message());
  const core::TimePoint now = clock_.now();
  proto::StatusReply reply;
  reply.set_job(config_.job);
  reply.set_region(region_config_.name);
  reply.set_server(options_.server);
  reply.set_version(std::string(kVersion));
  reply.set_last_error(last_error_);
  proto::ShardStatus& shard = *reply.mutable_shard();
  shard.set_shard(shard_);
  shard.set_phase(phase());
  shard.set_slices(static_cast<std::uint32_t>(slices_.size()));
  for (const auto& slice : slices_) shard.set_elements(shard.elements() + slice->slice().elements);
  shard.set_clock(membership_.slowest());
  shard.set_commits(commits_);
  shard.set_samples(samples_);
  shard.set_refused_not_finite(refused_not_finite_);
  shard.set_refused_malformed(refused_malformed_);
  shard.set_received_bytes(socket_->received_bytes());
  shard.set_sent_bytes(socket_->sent_bytes());
  for (const auto& [worker, member] : membership_.members()) {
    proto::WorkerStatus* entry = shard.add_workers();
    entry->set_worker(worker);
    entry->set_step(member.finished);
    entry->set_refused(member.refused);
    entry->set_done(member.done);
    *entry->mutable_times() = member.times;
    const auto left = member.living ? config_.commit.lease - (now - member.heard) : core::Duration(0);
    entry->set_lease_left_ms(static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(left).count())));
  }
  std::vector<std::uint64_t> staleness = staleness_;
  if (sync_) {
    const SyncCounters counters = sync_->counters();
    staleness = counters.staleness;
    shard.set_newest_round(counters.newest_round);
    shard.set_contributions_folded(counters.folded);
    shard.set_duplicates_ignored(counters.duplicates);
    shard.set_resets(counters.resets);
    shard.set_checksum_mismatches(counters.checksum_mismatches);
    shard.set_overflows(counters.overflows);
    for (const std::uint32_t region : last_sync_without_)
      shard.add_last_sync_without(config_.regions[region].name);
    shard.set_halted(!draining_ && sync_->halted(membership_.slowest()));
  }
  if (question->norms()) add_norms(shard);
  while (!staleness.empty() && staleness.back() == 0) staleness.pop_back();
  for (const std::uint64_t count : staleness) shard.add_staleness(count);
  if (options_.local_shard == 0) {
    for (const wan::LinkState& link : host_.links()) {
      proto::LinkStatus* entry = reply.add_links();
      entry->set_region(config_.regions[link.peer.region].name);
      entry->set_server(link.peer.server);
      entry->set_up(link.up);
      entry->set_sent_bytes(link.sent_bytes);
      entry->set_received_bytes(link.received_bytes);
      entry->set_reconnects(link.reconnects);
      entry->set_refused(link.refused);
      entry->set_rtt_us(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(link.rtt).count()));
      entry->set_last_error(link.last_error);
    }
  }
  send(peer, proto::make_message(proto::Kind::kStatusReply, message.request_id, reply));
}

}  // namespace isthmus::server
