// Fills a config from a tree, and says everything that is wrong with the tree.
//
// Threads: belongs to its caller.
// Memory:  views the tree, which must outlive it.
// Errors:  collected; a value with an error keeps its default.

#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/config_fields.h"
#include "core/config_tree.h"

namespace isthmus::core {

class ConfigReader : public ConfigFields {
 public:
  ConfigReader(const ConfigNode& root, std::vector<ConfigError>& errors);

  // After the walk: the keys of the outermost map that nobody asked for are errors too.
  void finish();

  void require(Key key, std::string_view how) override;
  bool has(Key key, bool is_set) override;
  bool applies(Key key, bool condition, std::string_view when) override;
  void text(Key key, std::string& value) override;
  void name(Key key, std::string& value, std::size_t max_bytes) override;
  void flag(Key key, bool& value) override;
  void count(Key key, std::uint64_t& value, const CountRule& rule) override;
  void number(Key key, float& value, Range<float> range) override;
  void number(Key key, double& value, Range<double> range) override;
  void share(Key key, double& value, Range<double> range) override;
  void duration(Key key, Duration& value, Range<Duration> range) override;
  void bytes(Key key, std::uint64_t& value, Range<std::uint64_t> range) override;
  void rate(Key key, std::uint64_t& bytes_per_sec, Range<std::uint64_t> range) override;
  void address(Key key, Address& value) override;
  void every(Key key, Step& steps, Duration& time, Step max_steps, Range<Duration> time_range) override;
  void pick(Key key, std::size_t& index, std::span<const std::string_view> names) override;
  bool open(Key key, std::string_view short_for) override;
  void close() override;
  std::optional<std::size_t> open_list(Key key, std::size_t size, Range<std::size_t> range) override;
  bool open_item(std::size_t index) override;
  void close_list() override;

 private:
  struct Frame {
    const ConfigNode* node;
    std::string path;
    std::vector<std::string_view> known;  // Keys that the walk came past.
    std::size_t errors_before;
  };

  void push(const ConfigNode* node, std::string path);
  const ConfigNode* child(Key key);   // nullptr: absent. The key is known from now on.
  const ConfigNode* scalar(Key key);  // nullptr: absent, or an error was noted.
  std::string path_of(Key key) const;
  void error(const ConfigNode& at, std::string path, std::string message);

  // `parsed` into `value` if it is good and in `range`, whose ends `write` can print.
  template <typename T, typename Write>
  void assign(const ConfigNode& at, const std::string& path, T& value, Result<T> parsed, Range<T> range,
              Write write);

  std::vector<ConfigError>& errors_;
  std::vector<Frame> open_;
  std::deque<ConfigNode> made_;  // Maps made of a scalar that was short for one. Their addresses stay.
};

}  // namespace isthmus::core
