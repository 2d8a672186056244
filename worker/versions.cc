#include "worker/versions.h"

namespace isthmus::worker {

Versions::Known* Versions::find(core::SliceId slice) {
  if (slice >= known_.size()) return nullptr;
  Known& known = known_[slice];
  return known.membership == memberships_[known.shard] ? &known : nullptr;
}

void Versions::complete(Part& part) {
  part.membership = memberships_[part.shard];
  for (const proto::Record& record : part.push_pull.push()) {
    const Known* known = find(record.slice());
    part.push_pull.add_computed_from(known ? known->last_pulled : 0);
  }
  for (std::size_t i = 0; i < part.targets.size(); ++i) {
    const Target& target = part.targets[i];
    if (target.slice >= known_.size()) known_.resize(target.slice + 1);
    Known* known = find(target.slice);
    if (known == nullptr) {
      known_[target.slice] = {.shard = part.shard, .membership = part.membership};
      continue;
    }
    if (known->view == target.to.data())
      part.push_pull.mutable_pull(static_cast<int>(i))->set_known_version(known->version);
    known->view = nullptr;
  }
}

void Versions::hold(std::span<const Held> slices) {
  for (const Held& held : slices) {
    Known* known = find(held.slice);
    if (known == nullptr || known->membership != held.membership) continue;
    known->view = held.view;
    known->version = held.version;
    known->last_pulled = held.version;
  }
}

}  // namespace isthmus::worker
