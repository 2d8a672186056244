// Writes a config as YAML that reads back to the same values.
//
// Threads: belongs to its caller.  Memory: the text.  Errors: none.

#pragma once

#include <string>

#include "core/config_fields.h"

namespace isthmus::core {

class ConfigWriter : public ConfigFields {
 public:
  std::string take() && { return std::move(out_); }

  void require(Key, std::string_view) override {}
  bool has(Key, bool is_set) override { return is_set; }
  bool applies(Key, bool condition, std::string_view) override { return condition; }
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
  void line(Key key, const std::string& value);

  std::string out_;
  std::size_t indent_ = 0;
  bool item_starts_ = false;  // The next line carries the '-' of its list item.
};

}  // namespace isthmus::core
