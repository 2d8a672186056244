// A server's state made up for tests: two slices, Adam's two arrays each, the first one at home here.

#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "server/directory.h"
#include "server/saved_state.h"
#include "tests/server/server_support.h"

namespace isthmus::server {

inline core::VersionedFloats::Reference array_of(std::size_t elements, float first) {
  auto values = std::make_shared<float[]>(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

// Of two regions, one server each with two shards.
inline core::JobConfig checkpoint_job() {
  core::JobConfig config = small_job({{2}, {2}});
  config.optimizer.kind = core::OptimizerKind::kAdam;
  return config;
}

inline SavedServer saved_server(const core::JobConfig& config, Step step = 400) {
  const core::Layout layout = layout_of({4, 4});
  const Directory directory(config, layout);
  SavedServer saved{.job = config.job,
                    .region = config.regions[0].name,
                    .server = 0,
                    .optimizer = "adam",
                    .mean_squares = false,
                    .layout = layout,
                    .shards = {}};
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    SavedShard& to = saved.shards.emplace_back();
    to = {.shard = shard,
          .clock = step + shard,
          .commits = 801,
          .samples = 12345678901ull,
          .members = {{0, 1ull << 63, false}, {7, 5, true}},
          .slices = {}};
    for (const core::Slice& slice : layout.slices()) {
      if (directory.shard_of(0, slice.id) != shard) continue;
      const float base = 100.0f * static_cast<float>(slice.id + 1);
      SavedSlice& one = to.slices.emplace_back();
      one.slice = slice.id;
      one.parameters = array_of(slice.elements, base);
      one.state = {array_of(slice.elements, base + 10), array_of(slice.elements, base + 20)};
      one.version = 402;
      one.commits = 400;
      one.committed_step = 401;
      one.pushed = {{3, {99, 400}}};
      one.untold_samples = 64;
      one.anchor = {17, 50};
      if (directory.home_of(slice.id) == 0)
        one.home = {.global = array_of(slice.elements, base + 30),
                    .round = 50,
                    .folded_count = 98,
                    .peers = {{{1, 50}, false, 512.0, 51, 50}, {{2, 48}, true, 0.5, 49, 48}}};
    }
  }
  return saved;
}

inline std::vector<float> values_of(const core::VersionedFloats::Reference& array, std::size_t elements) {
  return {array.get(), array.get() + elements};
}

// "" or the first thing that differs.
inline std::string difference(const SavedServer& a, const SavedServer& b) {
  if (a.job != b.job || a.region != b.region || a.server != b.server || a.optimizer != b.optimizer ||
      a.mean_squares != b.mean_squares || a.layout.hash() != b.layout.hash() ||
      a.shards.size() != b.shards.size())
    return "server";
  for (std::size_t i = 0; i < a.shards.size(); ++i) {
    const SavedShard &x = a.shards[i], &y = b.shards[i];
    if (x.shard != y.shard || x.clock != y.clock || x.commits != y.commits || x.samples != y.samples ||
        x.members != y.members || x.slices.size() != y.slices.size())
      return "shard " + std::to_string(i);
    for (std::size_t s = 0; s < x.slices.size(); ++s) {
      const SavedSlice &p = x.slices[s], &q = y.slices[s];
      const std::size_t n = a.layout.slices()[p.slice].elements;
      const std::string name = "slice " + std::to_string(p.slice);
      if (p.slice != q.slice || p.version != q.version || p.commits != q.commits ||
          p.committed_step != q.committed_step || p.pushed != q.pushed ||
          p.untold_samples != q.untold_samples || p.anchor != q.anchor ||
          p.home.has_value() != q.home.has_value())
        return name;
      if (values_of(p.parameters, n) != values_of(q.parameters, n)) return name + ": parameters";
      if (p.state.size() != q.state.size()) return name + ": state";
      for (std::size_t v = 0; v < p.state.size(); ++v)
        if (values_of(p.state[v], n) != values_of(q.state[v], n)) return name + ": state";
      if (p.home &&
          (values_of(p.home->global, n) != values_of(q.home->global, n) || p.home->round != q.home->round ||
           p.home->folded_count != q.home->folded_count || p.home->peers != q.home->peers))
        return name + ": home";
    }
  }
  return "";
}

}  // namespace isthmus::server
