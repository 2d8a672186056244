#include "core/layout.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_set>

namespace isthmus::core {
namespace {

constexpr std::size_t kMaxSlices = 1 << 20;

class Fnv1a {
 public:
  void add(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void add(std::string_view text) {
    add(text.size());
    for (char c : text) add_byte(static_cast<std::uint8_t>(c));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3ull; }
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

// The product of the dimensions, or 0 when it is over `limit` or a dimension is 0.
std::uint64_t checked_elements(const TensorSpec& tensor, std::uint64_t limit) {
  std::uint64_t product = 1;
  for (std::uint64_t dimension : tensor.shape) {
    if (dimension == 0 || dimension > limit / product) return 0;
    product *= dimension;
  }
  return product;
}

std::string describe(const TensorSpec& tensor) {
  std::string text = "'" + tensor.name + "' ";
  if (tensor.shape.empty()) return text + "scalar";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? "x" : "") + std::to_string(tensor.shape[i]);
  return text;
}

// Heaviest slice first onto the bin with the smallest load / weight; ties to the lower index.
std::vector<std::uint32_t> spread(const Layout& layout, std::span<const double> weights) {
  std::vector<std::uint32_t> order(layout.slices().size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return layout.slices()[a].elements > layout.slices()[b].elements;
  });
  std::vector<double> load(weights.size(), 0.0);
  std::vector<std::uint32_t> bin_of(order.size(), 0);
  for (std::uint32_t slice : order) {
    const auto elements = static_cast<double>(layout.slices()[slice].elements);
    std::size_t best = weights.size();
    double best_load = 0;
    for (std::size_t bin = 0; bin < weights.size(); ++bin) {
      if (weights[bin] <= 0) continue;
      const double then = (load[bin] + elements) / weights[bin];
      if (best == weights.size() || then < best_load) {
        best = bin;
        best_load = then;
      }
    }
    if (best == weights.size()) best = 0;
    load[best] += elements;
    bin_of[slice] = static_cast<std::uint32_t>(best);
  }
  return bin_of;
}

}  // namespace

Result<Layout> Layout::create(std::vector<TensorSpec> tensors, std::uint64_t slice_elements) {
  const auto invalid = [](std::string what) { return Status(ErrorCode::kInvalidArgument, std::move(what)); };
  if (tensors.empty()) return invalid("a job needs at least one tensor");
  if (tensors.size() > kMaxTensors) return invalid("more than 65536 tensors");
  if (slice_elements == 0) return invalid("a slice needs at least one element");

  Layout layout;
  layout.slice_elements_ = slice_elements;
  std::unordered_set<std::string_view> names;
  Fnv1a hash;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& tensor = tensors[i];
    if (tensor.name.empty() || tensor.name.size() > 255)
      return invalid("tensor " + std::to_string(i) + ": a name has 1 to 255 bytes");
    if (!names.insert(tensor.name).second) return invalid("tensor '" + tensor.name + "' is declared twice");
    const std::uint64_t elements = checked_elements(tensor, kMaxElements);
    if (elements == 0 || (layout.elements_ += elements) > kMaxElements)
      return invalid("tensor '" + tensor.name + "': a dimension is 0, or the model exceeds 2^40 elements");
    if (elements / slice_elements > kMaxSlices - std::min(kMaxSlices, layout.slices_.size()))
      return invalid("more than 2^20 slices; use larger ones");
    layout.first_slice_.push_back(layout.slices_.size());
    for (std::uint64_t offset = 0; offset < elements; offset += slice_elements) {
      layout.slices_.push_back({static_cast<SliceId>(layout.slices_.size()),
                                {static_cast<std::uint32_t>(i)},
                                offset,
                                std::min(slice_elements, elements - offset)});
    }
    hash.add(tensor.name);
    hash.add(tensor.shape.size());
    for (std::uint64_t dimension : tensor.shape) hash.add(dimension);
  }
  if (layout.slices_.size() > kMaxSlices) return invalid("more than 2^20 slices; use larger ones");
  layout.first_slice_.push_back(layout.slices_.size());
  hash.add(slice_elements);
  layout.hash_ = hash.value();
  layout.tensors_ = std::move(tensors);
  return layout;
}

std::span<const Slice> Layout::slices_of(TensorId tensor) const noexcept {
  const std::size_t first = first_slice_[tensor.value];
  return slices().subspan(first, first_slice_[tensor.value + 1] - first);
}

std::string Layout::difference(const Layout& here, const Layout& there) {
  if (here.slice_elements_ != there.slice_elements_)
    return "slices have " + std::to_string(here.slice_elements_) + " elements here and " +
           std::to_string(there.slice_elements_) + " there";
  const std::size_t both = std::min(here.tensors_.size(), there.tensors_.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (here.tensors_[i] != there.tensors_[i])
      return "tensor " + std::to_string(i) + " is " + describe(here.tensors_[i]) + " here and " +
             describe(there.tensors_[i]) + " there";
  }
  if (here.tensors_.size() != there.tensors_.size())
    return std::to_string(here.tensors_.size()) + " tensors here and " +
           std::to_string(there.tensors_.size()) + " there";
  return "";
}

std::vector<std::uint32_t> assign_shards(const Layout& layout, std::uint32_t shards) {
  return spread(layout, std::vector<double>(shards, 1.0));
}

std::vector<std::uint32_t> assign_homes(const Layout& layout, std::span<const double> weights) {
  return spread(layout, weights);
}

}  // namespace isthmus::core
