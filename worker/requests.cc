#include "worker/requests.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "core/bytes.h"
#include "core/random.h"
#include "proto/meta.h"
#include "worker/clipping.h"

namespace isthmus::worker {
namespace {

// A shard's share travels in messages of about this size, so that it is decoded, folded and answered while
// more of it is on its way; in at most so many, since each has its cost at both ends.
constexpr std::size_t kMessageBytes = 1u << 20;
constexpr std::size_t kMostMessages = 64;

// Whether the tensors of `items` exist, once each, and their views fit.
template <typename Item>
Status check_views(const core::Layout& layout, std::span<const Item> items) {
  std::vector<bool> seen(layout.tensors().size(), false);
  for (const Item& item : items) {
    if (item.id.value >= layout.tensors().size())
      return {ErrorCode::kInvalidArgument, "there is no tensor " + std::to_string(item.id.value)};
    const TensorSpec& tensor = layout.tensors()[item.id.value];
    if (seen[item.id.value])
      return {ErrorCode::kInvalidArgument, "tensor '" + tensor.name + "' is given twice"};
    seen[item.id.value] = true;
    if (item.values.size() != tensor.elements())
      return {ErrorCode::kInvalidArgument, "tensor '" + tensor.name + "' has " +
                                               std::to_string(tensor.elements()) + " elements, the view " +
                                               std::to_string(item.values.size())};
  }
  return {};
}

struct Source {
  core::SliceId slice = 0;
  ConstTensorView values;
  const compression::Codec* codec = nullptr;
  float scale = 1.0f;
  std::shared_ptr<const void> owner = {};  // Of `values`, if they may be sent from where they are.

  std::size_t most_bytes() const { return codec->max_encoded_bytes(values.size()); }
};

struct Encoded {
  std::vector<proto::Record> records;
  std::vector<core::SharedBytes> payload;
};

void describe(const Source& source, std::size_t bytes, Encoded& encoded) {
  proto::Record& record = encoded.records.emplace_back();
  record.set_slice(source.slice);
  record.set_bytes(bytes);
  record.set_codec(static_cast<std::uint32_t>(source.codec->id()));
}

// Writes the record of `source` into `out` and appends its description.
std::size_t encode_one(const Source& source, const compression::CodecState& draws, DeepCompression* deep,
                       std::span<std::byte> out, Encoded& encoded) {
  compression::CodecState state = draws;
  state.key = core::mix_key(draws.key, 0, source.slice);
  const std::size_t bytes =
      source.codec->encode(source.values, deep == nullptr ? state : deep->state(source.slice), out);
  if (deep != nullptr) deep->sent(source.slice, out.first(bytes));
  describe(source, bytes, encoded);
  return bytes;
}

bool is_small(const Source& source) { return source.most_bytes() < proto::kBigPieceBytes; }

// An fp32 record is the values themselves.
bool needs_no_copy(const Source& source) {
  return source.owner && !is_small(source) && source.codec->id() == compression::CodecId::kFp32;
}

// In the order given. Small ones that follow one another share a piece.
Encoded encode(std::span<const Source> sources, const compression::CodecState& draws, DeepCompression* deep) {
  Encoded encoded;
  for (std::size_t first = 0; first < sources.size();) {
    if (const Source& source = sources[first]; needs_no_copy(source)) {
      encoded.payload.push_back({source.owner, std::as_bytes(source.values)});
      describe(source, source.values.size_bytes(), encoded);
      ++first;
      continue;
    }
    std::size_t bytes = sources[first].most_bytes();
    std::size_t last = first + 1;
    while (last < sources.size() && is_small(sources[first]) && is_small(sources[last]) &&
           bytes + sources[last].most_bytes() <= proto::kJoinedBytes)
      bytes += sources[last++].most_bytes();
    core::Buffer piece(bytes);
    std::size_t used = 0;
    for (; first < last; ++first)
      used += encode_one(sources[first], draws, deep, piece.writable().subspan(used), encoded);
    encoded.payload.push_back(std::move(piece).share(used));
  }
  return encoded;
}

const compression::Codec& fp32() {
  const auto codec = compression::find_decoder(static_cast<std::uint8_t>(compression::CodecId::kFp32));
  return **codec;
}

// What each shard is to be sent. [shard]
std::vector<std::vector<Source>> spread(const ShardedLayout& layout, const compression::Codec& codec,
                                        std::span<const Gradient> gradients,
                                        std::span<const float> scales = {}) {
  std::vector<std::vector<Source>> sources(layout.shards());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Gradient& gradient = gradients[i];
    const float scale = scales.empty() ? 1.0f : scales[i];
    for (const core::Slice& slice : layout.layout().slices_of(gradient.id)) {
      const ConstTensorView values = gradient.values.subspan(slice.offset, slice.elements);
      const bool as_asked = codec.id() == compression::CodecId::kFp32 || compression::all_finite(values);
      sources[layout.shard_of(slice.id)].push_back(
          {slice.id, values, as_asked ? &codec : &fp32(), scale, gradient.owner});
    }
  }
  return sources;
}

std::vector<std::vector<Source>> spread(const ShardedLayout& layout, DeepCompression& deep, Step step,
                                        std::span<const Gradient> gradients) {
  std::vector<std::vector<Source>> sources(layout.shards());
  for (const Gradient& gradient : gradients) {
    for (const core::Slice& slice : layout.layout().slices_of(gradient.id)) {
      const ConstTensorView gathered =
          deep.gather(slice.id, gradient.values.subspan(slice.offset, slice.elements));
      sources[layout.shard_of(slice.id)].push_back({slice.id, gathered, &deep.codec(slice.id, step)});
    }
  }
  return sources;
}

void sort_by_slice(std::vector<Target>& targets) {
  std::sort(targets.begin(), targets.end(),
            [](const Target& a, const Target& b) { return a.slice < b.slice; });
}

// Where each shard's slices go, by ascending slice. [shard]
std::vector<std::vector<Target>> spread(const ShardedLayout& layout, std::span<const Parameters> parameters) {
  std::vector<std::vector<Target>> targets(layout.shards());
  for (const Parameters& wanted : parameters) {
    for (const core::Slice& slice : layout.layout().slices_of(wanted.id))
      targets[layout.shard_of(slice.id)].push_back(
          {slice.id, wanted.values.subspan(slice.offset, slice.elements)});
  }
  for (auto& of_shard : targets) sort_by_slice(of_shard);
  return targets;
}

// What one message is about.
struct Share {
  std::span<const Source> sources;
  std::vector<Target> targets;  // By ascending slice.
};

// A shard's work as messages, in the order of the sources; a slice that is pulled too is pulled with its
// push, what is only pulled comes last. `targets` by ascending slice.
std::vector<Share> cut(std::span<const Source> sources, std::span<const Target> targets) {
  std::vector<bool> taken(targets.size(), false);
  std::size_t pushed = 0;
  std::size_t pulled = 0;
  for (const Source& source : sources) pushed += source.most_bytes();
  for (const Target& target : targets) pulled += target.to.size_bytes();
  const std::size_t most = std::max(kMessageBytes, (pushed + pulled) / kMostMessages);

  std::vector<Share> shares;
  std::size_t bytes = 0;  // Of the last share.
  const auto add = [&](std::size_t push_bytes, std::size_t pull_bytes) -> Share& {
    const std::size_t more = std::max(push_bytes, pull_bytes);
    if (shares.empty() || bytes + more > most) {
      shares.emplace_back();
      bytes = 0;
    }
    bytes += more;
    return shares.back();
  };
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto found = std::lower_bound(targets.begin(), targets.end(), sources[i].slice,
                                        [](const Target& t, core::SliceId slice) { return t.slice < slice; });
    const bool pulls = found != targets.end() && found->slice == sources[i].slice;
    Share& share = add(sources[i].most_bytes(), pulls ? found->to.size_bytes() : 0);
    share.sources = sources.subspan(i - share.sources.size(), share.sources.size() + 1);
    if (!pulls) continue;
    share.targets.push_back(*found);
    taken[static_cast<std::size_t>(found - targets.begin())] = true;
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!taken[i]) add(0, targets[i].to.size_bytes()).targets.push_back(targets[i]);
  }
  for (Share& share : shares) sort_by_slice(share.targets);
  return shares;
}

}  // namespace

Result<std::vector<Part>> make_push_pull(const ShardedLayout& layout, const compression::Codec& codec,
                                         std::span<const Gradient> gradients, std::uint64_t samples,
                                         std::span<const Parameters> parameters,
                                         const compression::CodecState& draws, DeepCompression* deep,
                                         const ClipConfig& clip) {
  ISTHMUS_RETURN_IF_ERROR(check_views(layout.layout(), gradients));
  ISTHMUS_RETURN_IF_ERROR(check_views(layout.layout(), parameters));
  if (samples == 0 && !gradients.empty())
    return Status(ErrorCode::kInvalidArgument, "a gradient is a mean over at least one sample");
  std::vector<Gradient> bad;
  if (deep != nullptr) {
    std::copy_if(gradients.begin(), gradients.end(), std::back_inserter(bad),
                 [](const Gradient& gradient) { return !compression::all_finite(gradient.values); });
  }
  if (!bad.empty()) {
    deep = nullptr;
    gradients = bad;
  }
  const std::vector<float> scales = clip_scales(gradients, clip);
  std::vector<std::vector<Source>> sources = deep == nullptr
                                                 ? spread(layout, codec, gradients, scales)
                                                 : spread(layout, *deep, draws.records, gradients);
  std::vector<std::vector<Target>> targets = spread(layout, parameters);
  std::vector<Part> parts;
  for (std::uint32_t shard = 0; shard < layout.shards(); ++shard) {
    std::stable_partition(sources[shard].begin(), sources[shard].end(), is_small);
    for (const Share& share : cut(sources[shard], targets[shard])) {
      Part& part = parts.emplace_back();
      part.shard = shard;
      Encoded encoded = encode(share.sources, draws, deep);
      part.push_pull.set_samples(samples);
      for (proto::Record& record : encoded.records) *part.push_pull.add_push() = std::move(record);
      if (!scales.empty()) {
        for (const Source& source : share.sources) part.push_pull.add_scale(source.scale);
      }
      part.payload = std::move(encoded.payload);
      part.targets = share.targets;
      for (const Target& target : part.targets) part.push_pull.add_pull()->set_slice(target.slice);
    }
  }
  return parts;
}

Result<std::vector<Part>> make_initialize(const ShardedLayout& layout, std::span<const Gradient> initial) {
  ISTHMUS_RETURN_IF_ERROR(check_views(layout.layout(), initial));
  if (initial.size() != layout.layout().tensors().size())
    return Status(ErrorCode::kInvalidArgument, "initial values are given for all tensors at once");
  std::vector<Part> parts = make_parts(layout.shards());
  std::vector<std::vector<Source>> sources = spread(layout, fp32(), initial);
  for (Part& part : parts) {
    std::sort(sources[part.shard].begin(), sources[part.shard].end(),
              [](const Source& a, const Source& b) { return a.slice < b.slice; });
    Encoded encoded = encode(sources[part.shard], {}, nullptr);
    proto::Initialize meta;
    for (proto::Record& record : encoded.records) *meta.add_records() = std::move(record);
    part.meta = meta.SerializeAsString();
    part.payload = std::move(encoded.payload);
  }
  return parts;
}

std::vector<Part> make_parts(std::uint32_t shards, const std::string& meta) {
  std::vector<Part> parts(shards);
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    parts[shard].shard = shard;
    parts[shard].meta = meta;
  }
  return parts;
}

}  // namespace isthmus::worker
