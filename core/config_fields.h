// The keys of a config, walked once each in order. core/config_schema.cc does the walk; what happens at
// a key is up to who walks: the reader fills the value, the writer writes it, the lister notes the key.
//
// Threads: an object belongs to its caller.
// Memory:  keys and rules are views of literals.
// Errors:  collected by the reader; the walk always goes to the end, so that all are found.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job_config.h"
#include "core/units.h"

namespace isthmus::core {

// Inclusive.
template <typename T>
struct Range {
  T min;
  T max;
};

struct CountRule {
  Range<std::uint64_t> range;
  std::string_view unit = "";  // "steps"; none: a bare number of what the key says.
  bool unit_optional = false;  // The key says it already, as in `steps: 3000`.
};

class ConfigFields {
 public:
  using Key = std::string_view;
  virtual ~ConfigFields() = default;

  // Before a value: what there must be, what there is, and what the rest of the map leaves without meaning.
  virtual void require(Key key, std::string_view how) = 0;
  virtual bool has(Key key, bool is_set) = 0;  // Visit the key? `is_set`: the value holds something.
  virtual bool applies(Key key, bool condition, std::string_view when) = 0;  // `when` is "kind: adam".

  virtual void text(Key key, std::string& value) = 0;
  virtual void name(Key key, std::string& value, std::size_t max_bytes) = 0;  // [a-z0-9-]
  virtual void flag(Key key, bool& value) = 0;
  virtual void count(Key key, std::uint64_t& value, const CountRule& rule) = 0;
  virtual void number(Key key, float& value, Range<float> range) = 0;
  virtual void number(Key key, double& value, Range<double> range) = 0;
  virtual void share(Key key, double& value, Range<double> range) = 0;
  virtual void duration(Key key, Duration& value, Range<Duration> range) = 0;
  virtual void bytes(Key key, std::uint64_t& value, Range<std::uint64_t> range) = 0;
  virtual void rate(Key key, std::uint64_t& bytes_per_sec, Range<std::uint64_t> range) = 0;
  virtual void address(Key key, Address& value) = 0;
  // "8 steps", "200ms" or "[8 steps, 200ms]"; 0 is the one not given.
  virtual void every(Key key, Step& steps, Duration& time, Step max_steps, Range<Duration> time_range) = 0;
  virtual void pick(Key key, std::size_t& index, std::span<const std::string_view> names) = 0;

  // A map, or a list of maps. A scalar in the place of a map is its `short_for` key, if that is not empty.
  virtual bool open(Key key, std::string_view short_for) = 0;
  virtual void close() = 0;
  virtual std::optional<std::size_t> open_list(Key key, std::size_t size, Range<std::size_t> range) = 0;
  virtual bool open_item(std::size_t index) = 0;
  virtual void close_list() = 0;

  void small_count(Key key, std::uint32_t& value, const CountRule& rule) {
    std::uint64_t wide = value;
    count(key, wide, rule);
    value = static_cast<std::uint32_t>(wide);
  }

  template <typename E>
  void choice(Key key, E& value) {
    auto index = static_cast<std::size_t>(value);
    pick(key, index, names_of(value));
    value = static_cast<E>(index);
  }

  void choice(Key key, std::string& value, std::span<const std::string_view> names) {
    auto index = static_cast<std::size_t>(std::find(names.begin(), names.end(), value) - names.begin());
    if (index == names.size()) index = 0;
    pick(key, index, names);
    value = names[index];
  }

  template <typename Visit>
  void map(Key key, Visit visit, std::string_view short_for = "") {
    if (!open(key, short_for)) return;
    visit();
    close();
  }

  template <typename T, typename Visit>
  void list(Key key, std::vector<T>& items, Range<std::size_t> range, Visit visit) {
    const std::optional<std::size_t> size = open_list(key, items.size(), range);
    if (!size) return;
    items.resize(*size);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!open_item(i)) continue;
      visit(items[i]);
      close();
    }
    close_list();
  }

  template <typename T, typename Visit>
  void maybe(Key key, std::optional<T>& value, Visit visit) {
    if (!has(key, value.has_value())) return;
    if (!value) value.emplace();
    visit(*value);
  }
};

}  // namespace isthmus::core
