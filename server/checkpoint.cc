#include "server/checkpoint.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "core/files.h"
#include "core/safetensors.h"
#include "isthmus/version.h"
#include "proto/checkpoint.pb.h"
#include "proto/json.h"
#include "proto/meta.h"

namespace isthmus::server {
namespace {

namespace fs = std::filesystem;
using Reference = core::VersionedFloats::Reference;

constexpr std::uint32_t kSchema = 1;
constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMaxStateVectors = 8;
constexpr std::size_t kReadBytes = 1 << 20;

Status corrupt(const std::string& what) { return {ErrorCode::kCorruption, what}; }

// What an array of a slice is called.
std::string name_of(const std::string& what, const core::Layout& layout, const core::Slice& slice) {
  return what + ":" + layout.tensors()[slice.tensor.value].name + ":" + std::to_string(slice.offset);
}

std::string state_name(std::size_t index) { return "state" + std::to_string(index); }

Result<std::uint32_t> checksum_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Status(ErrorCode::kNotFound, path.filename().string() + " is missing");
  std::vector<char> piece(kReadBytes);
  std::uint32_t checksum = 0;
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    checksum = proto::crc32c(std::as_bytes(std::span(piece.data(), static_cast<std::size_t>(in.gcount()))),
                             checksum);
  }
  if (in.bad()) return corrupt(path.filename().string() + " cannot be read");
  return checksum;
}

// ---- Writing ----------------------------------------------------------------------------------------

void describe(const SavedSlice& slice, proto::CheckpointSlice& to) {
  to.set_slice(slice.slice);
  to.set_version(slice.version);
  to.set_commits(slice.commits);
  to.set_committed_step(slice.committed_step);
  for (const auto& [worker, pushed] : slice.pushed) {
    proto::CheckpointPushed* entry = to.add_pushed();
    entry->set_worker(worker);
    entry->set_incarnation(pushed.incarnation);
    entry->set_steps(pushed.steps);
  }
  to.set_untold_samples(slice.untold_samples);
  to.mutable_anchor()->set_epoch(slice.anchor.epoch);
  to.mutable_anchor()->set_round(slice.anchor.round);
  if (!slice.home) return;
  proto::CheckpointHome& home = *to.mutable_home();
  home.set_round(slice.home->round);
  home.set_folded_count(slice.home->folded_count);
  for (const SavedHome::Peer& peer : slice.home->peers) {
    proto::CheckpointPeer* entry = home.add_peers();
    entry->set_incarnation(peer.folded.incarnation);
    entry->set_seq(peer.folded.seq);
    entry->set_final_folded(peer.final_folded);
    entry->set_weight(peer.weight);
    entry->set_deltas(peer.deltas);
    entry->set_records(peer.records);
  }
}

Status write_arrays(const fs::path& path, const core::Layout& layout, const SavedShard& shard) {
  std::vector<TensorSpec> table;
  std::vector<ConstTensorView> values;
  const auto add = [&](const std::string& what, const core::Slice& slice, const Reference& array) {
    table.push_back({name_of(what, layout, slice), {slice.elements}});
    values.emplace_back(array.get(), slice.elements);
  };
  for (const SavedSlice& saved : shard.slices) {
    const core::Slice& slice = layout.slices()[saved.slice];
    add("parameters", slice, saved.parameters);
    for (std::size_t v = 0; v < saved.state.size(); ++v) add(state_name(v), slice, saved.state[v]);
    if (saved.home) add("global", slice, saved.home->global);
  }
  return core::write_safetensors(path, table, values, {{"format", "pt"}});
}

// ---- Reading ----------------------------------------------------------------------------------------

Result<proto::CheckpointManifest> read_manifest(const fs::path& folder) {
  auto text = core::read_file(folder / kManifestFile, kMaxManifestBytes);
  if (!text.ok()) return std::move(text).status();
  proto::CheckpointManifest manifest;
  if (Status status = proto::from_json(*text, manifest); !status.ok())
    return corrupt(std::string(kManifestFile) + ": " + status.message());
  if (manifest.schema() != kSchema)
    return corrupt(std::string(kManifestFile) + ": schema " + std::to_string(manifest.schema()) +
                   " is not known to this version");
  if (manifest.shards().empty()) return corrupt(std::string(kManifestFile) + ": no shard is in it");
  return manifest;
}

Result<SavedHome> read_home(const proto::CheckpointHome& home) {
  SavedHome saved;
  saved.round = home.round();
  saved.folded_count = home.folded_count();
  for (const proto::CheckpointPeer& peer : home.peers()) {
    if (!(peer.weight() >= 0)) return corrupt("a region's weight is negative or not a number");
    saved.peers.push_back({{peer.incarnation(), peer.seq()},
                           peer.final_folded(),
                           peer.weight(),
                           peer.deltas(),
                           peer.records()});
  }
  return saved;
}

Result<SavedSlice> read_slice(const proto::CheckpointSlice& from) {
  SavedSlice saved;
  saved.slice = from.slice();
  saved.version = from.version();
  saved.commits = from.commits();
  saved.committed_step = from.committed_step();
  for (const proto::CheckpointPushed& pushed : from.pushed())
    saved.pushed[pushed.worker()] = {pushed.incarnation(), pushed.steps()};
  saved.untold_samples = from.untold_samples();
  saved.anchor = {from.anchor().epoch(), from.anchor().round()};
  if (from.has_home()) {
    auto home = read_home(from.home());
    if (!home.ok()) return std::move(home).status();
    saved.home = *std::move(home);
  }
  return saved;
}

// The file's arrays, each by its name.
class Arrays {
 public:
  static Result<Arrays> read(const fs::path& path) {
    auto file = core::read_safetensors(path);
    if (!file.ok()) return std::move(file).status();
    Arrays arrays;
    for (std::size_t i = 0; i < file->table.size(); ++i)
      arrays.values_.emplace(std::move(file->table[i].name), std::move(file->values[i]));
    return arrays;
  }

  Result<Reference> take(const std::string& name, std::size_t elements) {
    const auto found = values_.find(name);
    if (found == values_.end() || found->second.size() != elements)
      return corrupt("'" + name + "' is missing or of another length");
    const auto owner = std::make_shared<const std::vector<float>>(std::move(found->second));
    values_.erase(found);
    return Reference(owner, owner->data());
  }
  bool has(const std::string& name) const { return values_.contains(name); }
  bool empty() const { return values_.empty(); }

 private:
  std::map<std::string, std::vector<float>> values_;
};

Result<SavedShard> read_shard(const fs::path& folder, const proto::CheckpointShard& from,
                              const core::Layout& layout) {
  SavedShard saved;
  saved.shard = from.shard();
  saved.clock = from.clock();
  saved.commits = from.commits();
  saved.samples = from.samples();
  for (const proto::CheckpointMember& member : from.members())
    saved.members.push_back({member.worker(), member.incarnation(), member.done()});

  if (fs::path(from.file()).filename() != from.file() || from.file().empty())
    return corrupt("'" + from.file() + "' is no name of a file");
  const fs::path path = folder / from.file();
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  if (error) return Status(ErrorCode::kNotFound, from.file() + " is missing");
  if (bytes != from.file_bytes())
    return corrupt(from.file() + " has " + std::to_string(bytes) + " bytes instead of " +
                   std::to_string(from.file_bytes()));
  const auto checksum = checksum_of(path);
  if (!checksum.ok()) return checksum.status();
  if (*checksum != from.file_crc32c()) return corrupt(from.file() + ": its checksum is wrong");
  auto arrays = Arrays::read(path);
  if (!arrays.ok()) return std::move(arrays).status();

  std::optional<core::SliceId> before;
  for (const proto::CheckpointSlice& slice : from.slices()) {
    if (slice.slice() >= layout.slices().size() || (before && slice.slice() <= *before))
      return corrupt("slice " + std::to_string(slice.slice()) + " is unknown or out of order");
    before = slice.slice();
    const core::Slice& where = layout.slices()[slice.slice()];
    auto read = read_slice(slice);
    if (!read.ok()) return std::move(read).status();
    const auto take = [&](const std::string& what, Reference& to) -> Status {
      auto values = arrays->take(name_of(what, layout, where), where.elements);
      if (!values.ok()) return std::move(values).status().with_context(from.file());
      to = *std::move(values);
      return {};
    };
    ISTHMUS_RETURN_IF_ERROR(take("parameters", read->parameters));
    for (std::size_t v = 0; v < kMaxStateVectors && arrays->has(name_of(state_name(v), layout, where)); ++v)
      ISTHMUS_RETURN_IF_ERROR(take(state_name(v), read->state.emplace_back()));
    if (read->home) ISTHMUS_RETURN_IF_ERROR(take("global", read->home->global));
    saved.slices.push_back(*std::move(read));
  }
  if (!arrays->empty()) return corrupt(from.file() + " holds arrays of unknown slices");
  return saved;
}

}  // namespace

Status write_checkpoint(const fs::path& folder, const SavedServer& saved) {
  proto::CheckpointManifest manifest;
  manifest.set_schema(kSchema);
  manifest.set_isthmus(std::string(kVersion));
  manifest.set_job(saved.job);
  manifest.set_region(saved.region);
  manifest.set_server(saved.server);
  manifest.set_optimizer(saved.optimizer);
  manifest.set_mean_squares(saved.mean_squares);
  manifest.set_step(saved.step());
  *manifest.mutable_layout() = proto::to_table(saved.layout);
  for (const SavedShard& shard : saved.shards) {
    proto::CheckpointShard& entry = *manifest.add_shards();
    entry.set_shard(shard.shard);
    entry.set_clock(shard.clock);
    entry.set_commits(shard.commits);
    entry.set_samples(shard.samples);
    for (const SavedMember& member : shard.members) {
      proto::CheckpointMember* to = entry.add_members();
      to->set_worker(member.worker);
      to->set_incarnation(member.incarnation);
      to->set_done(member.done);
    }
    for (const SavedSlice& slice : shard.slices) describe(slice, *entry.add_slices());
    entry.set_file("shard-" + std::to_string(shard.shard) + ".safetensors");
    const fs::path path = folder / entry.file();
    ISTHMUS_RETURN_IF_ERROR(write_arrays(path, saved.layout, shard));
    std::error_code error;
    entry.set_file_bytes(fs::file_size(path, error));
    const auto checksum = checksum_of(path);
    if (!checksum.ok()) return checksum.status();
    entry.set_file_crc32c(*checksum);
  }
  return core::write_file(folder / kManifestFile, proto::to_json(manifest) + "\n");
}

Result<Step> checkpoint_step(const fs::path& folder) {
  const auto manifest = read_manifest(folder);
  if (!manifest.ok()) return manifest.status();
  return manifest->step();
}

Result<SavedServer> read_checkpoint(const fs::path& folder) {
  const auto manifest = read_manifest(folder);
  if (!manifest.ok()) return manifest.status();
  auto layout = proto::from_table(manifest->layout());
  if (!layout.ok()) return corrupt(std::string(kManifestFile) + ": layout: " + layout.status().message());
  SavedServer saved{.job = manifest->job(),
                    .region = manifest->region(),
                    .server = manifest->server(),
                    .optimizer = manifest->optimizer(),
                    .mean_squares = manifest->mean_squares(),
                    .layout = *std::move(layout),
                    .shards = {}};
  for (const proto::CheckpointShard& shard : manifest->shards()) {
    auto read = read_shard(folder, shard, saved.layout);
    if (!read.ok()) return std::move(read).status();
    saved.shards.push_back(*std::move(read));
  }
  return saved;
}

}  // namespace isthmus::server
