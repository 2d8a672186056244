// How contributions get into a shard's slices.

#include <algorithm>

#include "server/shard.h"

namespace isthmus::server {

Result<std::vector<Shard::PushRecord>> Shard::check_push(const proto::PushPull& push,
                                                         const proto::Message& message) {
  if (push.computed_from_size() != push.push_size())
    return Status(ErrorCode::kProtocol, "as many versions as pushed records are needed");
  std::vector<std::uint64_t> sizes;
  for (const proto::Record& record : push.push()) sizes.push_back(record.bytes());
  const auto records = proto::split_records(message, sizes);
  if (!records.ok()) return records.status();

  std::vector<PushRecord> checked;
  checked.reserve(records->size());
  for (std::size_t i = 0; i < records->size(); ++i) {
    const proto::Record& record = push.push(static_cast<int>(i));
    const auto index = index_of(record.slice());
    if (!index)
      return Status(ErrorCode::kProtocol, "slice " + std::to_string(record.slice()) + " is not here");
    if (record.codec() > 255) return Status(ErrorCode::kProtocol, "unknown codec");
    const auto codec = compression::find_decoder(static_cast<std::uint8_t>(record.codec()));
    if (!codec.ok()) return codec.status();
    const core::Slice& slice = slices_[*index]->slice();
    // Decoded here once only to be sure: what is kept is folded later, and must not fail then.
    const Status status = (*codec)->decode((*records)[i].view, std::span(scratch_).first(slice.elements));
    if (!status.ok()) {
      return Status(status.code(), "tensor '" + agreement_->layout.tensors()[slice.tensor.value].name +
                                       "': " + status.message());
    }
    const std::uint64_t version = slices_[*index]->version();
    const std::uint64_t from = push.computed_from(static_cast<int>(i));
    if (from != 0 && from <= version)
      ++staleness_[std::min<std::uint64_t>(version - from, staleness_.size() - 1)];
    checked.push_back({*index, {push.samples(), *codec, (*records)[i]}});
  }
  return checked;
}

void Shard::contribute(const Member& member, Step step, std::vector<PushRecord> records) {
  for (PushRecord& record : records) {
    LocalSlice& slice = *slices_[record.index];
    if (policy_->collects()) {
      // A second contribution to the same step is acknowledged and not applied.
      (void)slice.collect(step, member.worker, std::move(record.contribution));
    } else {
      slice.commit(record.contribution, *optimizer_, scheduled_learning_rate(config_.optimizer, step),
                   scratch_);
      ++commits_;
    }
  }
}

void Shard::commit_ready_steps() {
  if (!policy_->collects()) return;
  for (auto& slice : slices_) {
    for (const Step step : slice->collecting()) {
      const auto arrived = std::count_if(
          membership_.members().begin(), membership_.members().end(),
          [&](const auto& entry) { return entry.second.living && slice->has_collected(step, entry.first); });
      // A step that every living worker has finished is over, also for a slice that some did not push.
      if (policy_->may_commit(static_cast<std::size_t>(arrived), membership_.barrier_size()) ||
          membership_.slowest() > step || membership_.all_done())
        commit_step(*slice, step);
    }
  }
}

void Shard::commit_step(LocalSlice& slice, Step step) {
  slice.commit_collected(step, *optimizer_, scheduled_learning_rate(config_.optimizer, step), scratch_);
  ++commits_;
}

}  // namespace isthmus::server
