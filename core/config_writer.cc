#include "core/config_writer.h"

namespace isthmus::core {
namespace {

// Always quoted: then no text can be taken for a number, a list or a comment.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

void ConfigWriter::line(Key key, const std::string& value) {
  std::string start(indent_ * 2, ' ');
  if (item_starts_) start[start.size() - 2] = '-';
  item_starts_ = false;
  out_ += start;
  out_ += key;
  out_ += value.empty() ? ":" : ": ";
  out_ += value;
  out_ += '\n';
}

void ConfigWriter::text(Key key, std::string& value) { line(key, quoted(value)); }
// A name may be "1e3" or "true", which is no harm: it is read as what is written. But "-" starts a list.
void ConfigWriter::name(Key key, std::string& value, std::size_t) {
  line(key, value.empty() || value.front() == '-' || value == "null" ? quoted(value) : value);
}
void ConfigWriter::flag(Key key, bool& value) { line(key, value ? "true" : "false"); }
void ConfigWriter::count(Key key, std::uint64_t& value, const CountRule& rule) {
  line(key, rule.unit_optional ? std::to_string(value) : exact_count(value, rule.unit));
}
void ConfigWriter::number(Key key, float& value, Range<float>) { line(key, exact_number(value)); }
void ConfigWriter::number(Key key, double& value, Range<double>) { line(key, exact_number(value)); }
void ConfigWriter::share(Key key, double& value, Range<double>) { line(key, exact_share(value)); }
void ConfigWriter::duration(Key key, Duration& value, Range<Duration>) { line(key, exact_duration(value)); }
void ConfigWriter::bytes(Key key, std::uint64_t& value, Range<std::uint64_t>) {
  line(key, exact_bytes(value));
}
void ConfigWriter::rate(Key key, std::uint64_t& bytes_per_sec, Range<std::uint64_t>) {
  line(key, exact_rate(bytes_per_sec));
}
void ConfigWriter::address(Key key, Address& value) { line(key, quoted(value.to_string())); }

void ConfigWriter::every(Key key, Step& steps, Duration& time, Step, Range<Duration>) {
  const std::string in_steps = exact_count(steps, "steps");
  if (time == Duration::zero()) return line(key, in_steps);
  line(key, steps == 0 ? exact_duration(time) : "[" + in_steps + ", " + exact_duration(time) + "]");
}

void ConfigWriter::pick(Key key, std::size_t& index, std::span<const std::string_view> names) {
  line(key, std::string(names[index]));
}

bool ConfigWriter::open(Key key, std::string_view) {
  line(key, "");
  ++indent_;
  return true;
}

void ConfigWriter::close() { --indent_; }

std::optional<std::size_t> ConfigWriter::open_list(Key key, std::size_t size, Range<std::size_t>) {
  line(key, "");
  ++indent_;
  return size;
}

bool ConfigWriter::open_item(std::size_t) {
  ++indent_;
  item_starts_ = true;
  return true;
}

void ConfigWriter::close_list() { --indent_; }

}  // namespace isthmus::core
