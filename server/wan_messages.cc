#include "server/wan_messages.h"

#include "proto/meta.h"

namespace isthmus::server {
namespace {

void put(proto::AnchorId* to, const AnchorId& from) {
  to->set_epoch(from.epoch);
  to->set_round(from.round);
}

AnchorId get(const proto::AnchorId& from) { return {from.epoch(), from.round()}; }

void put(proto::Folded* to, const ContributionId& from, std::uint32_t region) {
  to->set_region(region);
  to->set_incarnation(from.incarnation);
  to->set_seq(from.seq);
}

ContributionId get(const proto::Folded& from) { return {from.incarnation(), from.seq()}; }

template <typename Meta>
proto::Message with_record(proto::Kind kind, core::SliceId slice, const Meta& meta,
                           const core::SharedBytes& record) {
  proto::Message message = proto::make_message(kind, slice, meta);
  if (!record.view.empty()) message.payload.push_back(record);
  return message;
}

// A WAN message carries one record: its whole payload.
Result<core::SharedBytes> record_of(const proto::Message& message) {
  if (message.payload.size() > 1)
    return Status(ErrorCode::kProtocol, std::string(to_string(message.kind)) + ": more than one record");
  return message.payload.empty() ? core::SharedBytes() : message.payload.front();
}

Result<std::uint8_t> codec_of(const proto::Message& message, std::uint32_t codec) {
  if (codec > 255)
    return Status(ErrorCode::kProtocol, std::string(to_string(message.kind)) + ": unknown codec");
  return static_cast<std::uint8_t>(codec);
}

}  // namespace

proto::Message to_message(core::SliceId slice, const Contribution& contribution, Step clock) {
  proto::Contribution meta;
  meta.set_incarnation(contribution.id.incarnation);
  meta.set_seq(contribution.id.seq);
  put(meta.mutable_base(), contribution.base);
  meta.set_samples(contribution.samples);
  meta.set_clock(clock);
  meta.set_codec(contribution.codec);
  meta.set_final(contribution.final);
  return with_record(proto::Kind::kContribution, slice, meta, contribution.record);
}

proto::Message to_message(core::SliceId slice, const GlobalDelta& delta, std::uint32_t receiver, Step clock) {
  proto::GlobalDelta meta;
  put(meta.mutable_base(), delta.base);
  put(meta.mutable_id(), delta.id);
  put(meta.mutable_folded(), delta.folded, receiver);
  meta.set_clock(clock);
  meta.set_codec(delta.codec);
  meta.set_has_checksum(delta.checksum.has_value());
  meta.set_checksum(delta.checksum.value_or(0));
  return with_record(proto::Kind::kGlobalDelta, slice, meta, delta.record);
}

proto::Message to_message(core::SliceId slice, const Reset& reset, std::uint32_t receiver, Step clock) {
  proto::Reset meta;
  put(meta.mutable_id(), reset.id);
  put(meta.mutable_folded(), reset.folded, receiver);
  meta.set_clock(clock);
  meta.set_final(reset.final);
  meta.set_all_told(reset.all_told);
  return with_record(proto::Kind::kReset, slice, meta, reset.values);
}

proto::Message to_message(core::SliceId slice, const GlobalDeltaAck& ack) {
  proto::GlobalDeltaAck meta;
  put(meta.mutable_id(), ack.id);
  meta.set_incarnation(ack.incarnation);
  return proto::make_message(proto::Kind::kGlobalDeltaAck, slice, meta);
}

proto::Message reset_request(core::SliceId slice, const GlobalDeltaAck& have, const std::string& why) {
  proto::ResetRequest meta;
  put(meta.mutable_have(), have.id);
  meta.set_incarnation(have.incarnation);
  meta.set_why(why);
  return proto::make_message(proto::Kind::kResetRequest, slice, meta);
}

Result<Contribution> to_contribution(const proto::Message& message, Step& clock) {
  const auto meta = proto::parse_meta<proto::Contribution>(message);
  if (!meta.ok()) return meta.status();
  clock = meta->clock();
  auto record = record_of(message);
  if (!record.ok()) return record.status();
  const auto codec = codec_of(message, meta->codec());
  if (!codec.ok()) return codec.status();
  return Contribution{{meta->incarnation(), meta->seq()},
                      get(meta->base()),
                      meta->samples(),
                      meta->final(),
                      *codec,
                      *std::move(record)};
}

Result<GlobalDelta> to_global_delta(const proto::Message& message, Step& clock) {
  const auto meta = proto::parse_meta<proto::GlobalDelta>(message);
  if (!meta.ok()) return meta.status();
  clock = meta->clock();
  auto record = record_of(message);
  if (!record.ok()) return record.status();
  const auto codec = codec_of(message, meta->codec());
  if (!codec.ok()) return codec.status();
  GlobalDelta delta{get(meta->base()), get(meta->id()), get(meta->folded()), {}, *codec, *std::move(record)};
  if (meta->has_checksum()) delta.checksum = meta->checksum();
  return delta;
}

Result<Reset> to_reset(const proto::Message& message, Step& clock) {
  const auto meta = proto::parse_meta<proto::Reset>(message);
  if (!meta.ok()) return meta.status();
  clock = meta->clock();
  auto record = record_of(message);
  if (!record.ok()) return record.status();
  return Reset{get(meta->id()), get(meta->folded()), meta->final(), meta->all_told(), *std::move(record)};
}

Result<GlobalDeltaAck> to_ack(const proto::Message& message) {
  if (message.kind == proto::Kind::kResetRequest) {
    const auto meta = proto::parse_meta<proto::ResetRequest>(message);
    if (!meta.ok()) return meta.status();
    return GlobalDeltaAck{get(meta->have()), meta->incarnation()};
  }
  const auto meta = proto::parse_meta<proto::GlobalDeltaAck>(message);
  if (!meta.ok()) return meta.status();
  return GlobalDeltaAck{get(meta->id()), meta->incarnation()};
}

}  // namespace isthmus::server
