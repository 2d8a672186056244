#include "worker/snapshot.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "compression/codec.h"

namespace isthmus::worker {
namespace {

constexpr std::uint64_t kFirstLead = 2;   // Rounds ahead of the newest one.
constexpr std::uint64_t kLastLead = 256;  // Each try doubles it.

struct Answer {
  proto::Message message;
  proto::SnapshotReply meta;
};

proto::SnapshotSource source_of(Snapshot which) {
  switch (which) {
    case Snapshot::kParameters: return proto::SNAPSHOT_PARAMETERS;
    case Snapshot::kShared: return proto::SNAPSHOT_ANCHOR;
    case Snapshot::kOwnBeforeFinal: return proto::SNAPSHOT_OWN;
    case Snapshot::kFinal: return proto::SNAPSHOT_FINAL;
  }
  return proto::SNAPSHOT_PARAMETERS;
}

Result<std::vector<Answer>> ask_once(const proto::Snapshot& question, const AskShards& ask) {
  auto messages = ask(question);
  if (!messages.ok()) return std::move(messages).status();
  std::vector<Answer> answers;
  for (proto::Message& message : *messages) {
    auto meta = proto::parse_meta<proto::SnapshotReply>(message);
    if (!meta.ok()) return std::move(meta).status();
    answers.push_back({std::move(message), std::move(*meta)});
  }
  return answers;
}

// Slices move from round to round on their own, so one is chosen that lies ahead of all of them. The first
// question, for round 0, only asks where they are; regions that have no rounds answer it at once.
Result<std::vector<Answer>> ask_for_one_round(proto::Snapshot question, const AskShards& ask) {
  for (std::uint64_t lead = kFirstLead; lead <= kLastLead; lead *= 2) {
    auto answers = ask_once(question, ask);
    if (!answers.ok()) return answers;
    std::uint64_t newest = question.round();
    bool too_late = false;
    for (const Answer& answer : *answers) {
      too_late = too_late || answer.meta.too_late();
      newest = std::max(newest, answer.meta.newest_round());
    }
    if (!too_late) return answers;
    if (newest > std::numeric_limits<std::uint64_t>::max() - lead) break;
    question.set_round(newest + lead);
  }
  return Status(ErrorCode::kUnavailable, "snapshot: rounds pass faster than they can be asked for");
}

// Decodes the records of wanted slices; counts them.
Status decode_answer(const Answer& answer, const core::Layout& layout, std::span<const TensorView> views,
                     std::vector<bool>& filled) {
  std::vector<std::uint64_t> sizes;
  for (const proto::Record& record : answer.meta.records()) sizes.push_back(record.bytes());
  auto records = proto::split_records(answer.message, sizes);
  if (!records.ok()) return std::move(records).status();
  for (int i = 0; i < answer.meta.records_size(); ++i) {
    const proto::Record& record = answer.meta.records(i);
    if (record.slice() >= layout.slices().size())
      return {ErrorCode::kProtocol, "snapshot reply: there is no slice " + std::to_string(record.slice())};
    const core::Slice& slice = layout.slices()[record.slice()];
    const TensorView view = views[slice.tensor.value];
    if (view.empty()) continue;
    const auto codec = compression::find_decoder(static_cast<std::uint8_t>(std::min(record.codec(), 255u)));
    if (!codec.ok()) return codec.status();
    const core::SharedBytes& bytes = (*records)[static_cast<std::size_t>(i)];
    ISTHMUS_RETURN_IF_ERROR((*codec)->decode(bytes.view, view.subspan(slice.offset, slice.elements)));
    filled[record.slice()] = true;
  }
  return {};
}

// The view of each tensor; empty for those not asked for.
Result<std::vector<TensorView>> views_of(const core::Layout& layout, std::span<const Parameters> parameters) {
  std::vector<TensorView> views(layout.tensors().size());
  for (const Parameters& wanted : parameters) {
    if (wanted.id.value >= views.size() ||
        wanted.values.size() != layout.tensors()[wanted.id.value].elements())
      return Status(ErrorCode::kInvalidArgument,
                    "snapshot: the view of tensor " + std::to_string(wanted.id.value) + " does not fit");
    views[wanted.id.value] = wanted.values;
  }
  return views;
}

}  // namespace

Status read_snapshot(Snapshot which, const ShardedLayout& layout, std::span<const Parameters> parameters,
                     const AskShards& ask, Step* step) {
  const auto views = views_of(layout.layout(), parameters);
  if (!views.ok()) return views.status();
  proto::Snapshot question;
  question.set_source(source_of(which));
  const auto answers =
      which == Snapshot::kShared ? ask_for_one_round(question, ask) : ask_once(question, ask);
  if (!answers.ok()) return answers.status();

  std::vector<bool> filled(layout.layout().slices().size(), false);
  Step clock = std::numeric_limits<Step>::max();
  for (const Answer& answer : *answers) {
    ISTHMUS_RETURN_IF_ERROR(decode_answer(answer, layout.layout(), *views, filled));
    clock = std::min<Step>(clock, answer.meta.step());
  }
  for (const core::Slice& slice : layout.layout().slices()) {
    if (!filled[slice.id] && !(*views)[slice.tensor.value].empty())
      return {ErrorCode::kProtocol, "snapshot reply: slice " + std::to_string(slice.id) + " is missing"};
  }
  if (step != nullptr) *step = clock;
  return {};
}

}  // namespace isthmus::worker
