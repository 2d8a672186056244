// How contributions get into a shard's slices.

#include <algorithm>

#include "server/learning_rate.h"
#include "server/shard.h"

namespace isthmus::server {

Result<std::vector<Shard::PushRecord>> Shard::check_push(const proto::PushPull& push,
                                                         const proto::Message& message) {
  if (push.computed_from_size() != push.push_size())
    return Status(ErrorCode::kProtocol, "as many versions as pushed records are needed");
  if (push.scale_size() != 0 && push.scale_size() != push.push_size())
    return Status(ErrorCode::kProtocol, "as many scales as pushed records are needed, or none");
  for (const float scale : push.scale()) {
    if (!(scale > 0.0f && scale <= 1.0f))  // Written so that NaN fails.
      return Status(ErrorCode::kProtocol, "a scale is more than 0 and at most 1");
  }
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
    // What is kept is folded later, and must not fail then.
    const std::span<const std::byte> pushed = (*records)[i].view;
    const Status status =
        explain((*codec)->check(pushed, slice.elements), **codec, pushed.size(), slice.elements);
    if (!status.ok()) {
      return Status(status.code(), "tensor '" + agreement_->layout.tensors()[slice.tensor.value].name +
                                       "': " + status.message());
    }
    const float scale = push.scale_size() == 0 ? 1.0f : push.scale(static_cast<int>(i));
    checked.push_back(
        {*index, {push.samples(), *codec, (*records)[i], scale}, push.computed_from(static_cast<int>(i))});
  }
  return checked;
}

// A worker sends what is not finite as fp32, whatever its codec, so that it is refused here by its own name.
// Such a record of the right size can fail for nothing else.
Status Shard::explain(Status status, const compression::Codec& codec, std::size_t bytes,
                      std::size_t elements) {
  if (!status.ok() && codec.id() == compression::CodecId::kFp32 && bytes == elements * sizeof(float))
    return {ErrorCode::kInvalidArgument, "a value is not finite (NaN or Inf)"};
  return status;
}

// A second contribution to the same step is acknowledged and not applied.
void Shard::contribute(Member& member, Step step, std::vector<PushRecord> records) {
  for (PushRecord& record : records) {
    LocalSlice& slice = *slices_[record.index];
    const std::uint64_t version = slice.version();
    const std::uint64_t of_this = record.contribution.samples;
    // Not said, or of an earlier life of this server: nothing is known.
    const bool known = record.computed_from != 0 && record.computed_from <= version;
    const std::uint64_t staleness = known ? version - record.computed_from : 0;
    if (policy_->collects()) {
      if (!slice.collect(step, member.worker, std::move(record.contribution))) continue;
    } else {
      if (!slice.is_new(member.worker, member.incarnation, step)) continue;
      const double share = stale_share(staleness, config_.commit.least_weight);
      const auto rate = static_cast<float>(scheduled_learning_rate(config_.optimizer, step) * share);
      slice.commit(member.worker, record.contribution, *optimizer_, rate, scratch_);
      committed(slice, step);
    }
    // However many messages a step's slices come in.
    if (member.counted <= step) samples_ += of_this;
    member.counted = std::max(member.counted, step + 1);
    if (known) ++staleness_[std::min<std::uint64_t>(staleness, staleness_.size() - 1)];
  }
}

void Shard::commit_ready_steps() {
  if (!policy_->collects()) return;
  for (auto& slice : slices_) {
    for (const Step step : slice->collecting()) {
      // Who has finished a step sends nothing more for it: it may leave out a slice.
      const auto arrived =
          std::count_if(membership_.members().begin(), membership_.members().end(), [&](const auto& entry) {
            const auto& [worker, member] = entry;
            return member.living && (member.finished > step || slice->has_collected(step, worker));
          });
      if (policy_->may_commit(static_cast<std::size_t>(arrived), membership_.barrier_size()) ||
          membership_.slowest() > step || membership_.all_done())
        commit_step(*slice, step);
    }
  }
}

void Shard::commit_step(LocalSlice& slice, Step step) {
  slice.commit_collected(step, *optimizer_, scheduled_learning_rate(config_.optimizer, step), scratch_);
  committed(slice, step);
}

void Shard::committed(const LocalSlice& slice, Step step) {
  ++commits_;
  if (!slice.diverged()) return;
  const std::string& tensor = agreement_->layout.tensors()[slice.slice().tensor.value].name;
  fail({ErrorCode::kFailed, "training has diverged: tensor '" + tensor + "' is no longer finite after step " +
                                std::to_string(step) + "; a lower optimizer.learning_rate may help"});
}

}  // namespace isthmus::server
