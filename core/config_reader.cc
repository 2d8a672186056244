#include "core/config_reader.h"

#include "core/suggest.h"

namespace isthmus::core {
namespace {

constexpr std::size_t kMaxText = 4096;
// Of the text that an error repeats.
constexpr std::size_t kMaxQuoted = 64;

std::string quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, kMaxQuoted)) + (text.size() > kMaxQuoted ? "...'" : "'");
}

const char* kind_name(ConfigNode::Kind kind) {
  switch (kind) {
    case ConfigNode::Kind::kNull: return "nothing";
    case ConfigNode::Kind::kScalar: return "a value";
    case ConfigNode::Kind::kList: return "a list";
    case ConfigNode::Kind::kMap: return "a map";
  }
  return "something else";
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

ConfigReader::ConfigReader(const ConfigNode& root, std::vector<ConfigError>& errors) : errors_(errors) {
  if (root.kind != ConfigNode::Kind::kMap && root.kind != ConfigNode::Kind::kNull) {
    error(root, "",
          std::string("is ") + kind_name(root.kind) + "; a config is a map that starts with 'job: NAME'");
  }
  push(&root, "");
}

void ConfigReader::finish() { close(); }

void ConfigReader::push(const ConfigNode* node, std::string path) {
  open_.push_back({node, std::move(path), {}, errors_.size()});
}

const ConfigNode* ConfigReader::child(Key key) {
  Frame& frame = open_.back();
  if (std::find(frame.known.begin(), frame.known.end(), key) == frame.known.end()) frame.known.push_back(key);
  return frame.node->find(key);
}

const ConfigNode* ConfigReader::scalar(Key key) {
  const ConfigNode* node = child(key);
  if (node == nullptr || node->kind == ConfigNode::Kind::kScalar) return node;
  if (node->kind == ConfigNode::Kind::kNull) {
    error(*node, path_of(key), "has no value; give one or remove the line");
  } else {
    error(*node, path_of(key), std::string("takes one value, not ") + kind_name(node->kind));
  }
  return nullptr;
}

std::string ConfigReader::path_of(Key key) const { return join_key(open_.back().path, key); }

void ConfigReader::error(const ConfigNode& at, std::string path, std::string message) {
  errors_.push_back({at.line, std::move(path), std::move(message)});
}

template <typename T, typename Write>
void ConfigReader::assign(const ConfigNode& at, const std::string& path, T& value, Result<T> parsed,
                          Range<T> range, Write write) {
  if (!parsed) return error(at, path, parsed.status().message());
  if (*parsed < range.min || *parsed > range.max) {
    return error(at, path,
                 quoted(at.text) + " is out of range; give " + write(range.min) + " to " + write(range.max));
  }
  value = *parsed;
}

void ConfigReader::require(Key key, std::string_view how) {
  if (child(key) == nullptr) error(*open_.back().node, path_of(key), "missing; " + std::string(how));
}

bool ConfigReader::has(Key key, bool) { return child(key) != nullptr; }

bool ConfigReader::applies(Key key, bool condition, std::string_view when) {
  const ConfigNode* node = child(key);
  // After another error in the same map the condition may rest on a default; the user fixes that first.
  if (!condition && node != nullptr && errors_.size() == open_.back().errors_before) {
    error(*node, path_of(key), "has no effect here, only with " + std::string(when) + "; remove it");
  }
  return condition;
}

void ConfigReader::text(Key key, std::string& value) {
  const ConfigNode* node = scalar(key);
  if (node == nullptr) return;
  if (node->text.empty() || node->text.size() > kMaxText || has_control_characters(node->text)) {
    return error(*node, path_of(key), "must be 1 to 4096 characters in one line");
  }
  value = node->text;
}

void ConfigReader::name(Key key, std::string& value, std::size_t max_bytes) {
  const ConfigNode* node = scalar(key);
  if (node == nullptr) return;
  const bool letters =
      node->text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (!letters || node->text.empty() || node->text.size() > max_bytes) {
    return error(*node, path_of(key),
                 quoted(node->text) + " is no name; write 1 to " + std::to_string(max_bytes) +
                     " of the characters a-z, 0-9 and '-'");
  }
  value = node->text;
}

void ConfigReader::flag(Key key, bool& value) {
  const ConfigNode* node = scalar(key);
  if (node == nullptr) return;
  if (node->text != "true" && node->text != "false") {
    return error(*node, path_of(key), quoted(node->text) + " is neither true nor false; write one of them");
  }
  value = node->text == "true";
}

void ConfigReader::count(Key key, std::uint64_t& value, const CountRule& rule) {
  const ConfigNode* node = scalar(key);
  if (node == nullptr) return;
  assign(*node, path_of(key), value, parse_count(node->text, rule.unit, rule.unit_optional), rule.range,
         [&](std::uint64_t v) { return rule.unit_optional ? std::to_string(v) : exact_count(v, rule.unit); });
}

void ConfigReader::number(Key key, float& value, Range<float> range) {
  const ConfigNode* node = scalar(key);
  if (node == nullptr) return;
  assign(*node, path_of(key), value, parse_float(node->text), range, [](float v) { return exact_number(v); });
}

void ConfigReader::number(Key key, double& value, Range<double> range) {
  const ConfigNode* node = scalar(key);
  if (node == nullptr) return;
  assign(*node, path_of(key), value, parse_double(node->text), range,
         [](double v) { return exact_number(v); });
}

void ConfigReader::share(Key key, double& value, Range<double> range) {
  if (const ConfigNode* node = scalar(key)) {
    assign(*node, path_of(key), value, parse_share(node->text), range, exact_share);
  }
}

void ConfigReader::duration(Key key, Duration& value, Range<Duration> range) {
  if (const ConfigNode* node = scalar(key)) {
    assign(*node, path_of(key), value, parse_duration(node->text), range, exact_duration);
  }
}

void ConfigReader::bytes(Key key, std::uint64_t& value, Range<std::uint64_t> range) {
  if (const ConfigNode* node = scalar(key)) {
    assign(*node, path_of(key), value, parse_bytes(node->text), range, exact_bytes);
  }
}

void ConfigReader::rate(Key key, std::uint64_t& bytes_per_sec, Range<std::uint64_t> range) {
  if (const ConfigNode* node = scalar(key)) {
    assign(*node, path_of(key), bytes_per_sec, parse_rate(node->text), range, exact_rate);
  }
}

void ConfigReader::address(Key key, Address& value) {
  const ConfigNode* node = child(key);
  if (node == nullptr) return;
  if (node->kind == ConfigNode::Kind::kList) {
    return error(*node, path_of(key), "is a list; quote an IPv6 address, for example \"[::1]:7100\"");
  }
  if (scalar(key) == nullptr) return;
  Result<Address> parsed = parse_address(node->text);
  if (!parsed) return error(*node, path_of(key), parsed.status().message());
  value = *std::move(parsed);
}

void ConfigReader::every(Key key, Step& steps, Duration& time, Step max_steps, Range<Duration> time_range) {
  const ConfigNode* node = child(key);
  if (node == nullptr) return;
  const std::string path = path_of(key);
  const bool list = node->kind == ConfigNode::Kind::kList;
  if (!list && scalar(key) == nullptr) return;
  steps = 0;
  time = Duration::zero();
  const auto read = [&](const ConfigNode& part) {
    if (part.kind != ConfigNode::Kind::kScalar)
      return error(part, path, "takes steps and a time, nothing nested");
    const bool is_steps = part.text.find("step") != std::string::npos;
    if (is_steps ? steps != 0 : time != Duration::zero()) {
      return error(part, path, "is given twice; write it once, as in [8 steps, 200ms]");
    }
    if (is_steps) {
      assign(part, path, steps, parse_count(part.text, "steps"), {1, max_steps},
             [](Step v) { return exact_count(v, "steps"); });
    } else {
      Result<Duration> parsed = parse_duration(part.text);
      if (!parsed) return error(part, path, parsed.status().message() + "; for steps write '8 steps'");
      assign(part, path, time, parsed, time_range, exact_duration);
    }
  };
  if (!list) return read(*node);
  if (node->children.empty())
    return error(*node, path, "is empty; write for example 8 steps or [8 steps, 200ms]");
  for (const ConfigNode& part : node->children) read(part);
}

void ConfigReader::pick(Key key, std::size_t& index, std::span<const std::string_view> names) {
  const ConfigNode* node = scalar(key);
  if (node == nullptr) return;
  const auto found = std::find(names.begin(), names.end(), node->text);
  if (found != names.end()) {
    index = static_cast<std::size_t>(found - names.begin());
    return;
  }
  std::string message = quoted(node->text) + " is none of ";
  for (std::size_t i = 0; i < names.size(); ++i) message += (i == 0 ? "" : ", ") + std::string(names[i]);
  if (const std::string_view meant = nearest(node->text, names); !meant.empty()) {
    message += "; did you mean '" + std::string(meant) + "'?";
  } else {
    message += "; choose one of them";
  }
  error(*node, path_of(key), std::move(message));
}

bool ConfigReader::open(Key key, std::string_view short_for) {
  const ConfigNode* node = child(key);
  std::string path = path_of(key);
  if (node == nullptr) {  // Walked all the same: something in it may be required.
    ConfigNode& empty = made_.emplace_back();
    empty.line = open_.back().node->line;
    push(&empty, std::move(path));
    return true;
  }
  if (node->kind == ConfigNode::Kind::kScalar && !short_for.empty()) {
    ConfigNode& map = made_.emplace_back();
    map.kind = ConfigNode::Kind::kMap;
    map.line = node->line;
    map.children.push_back(*node);
    map.children.back().key = short_for;
    push(&map, std::move(path));
    return true;
  }
  if (node->kind == ConfigNode::Kind::kNull) {
    error(*node, path, "is empty; give its keys or remove the line");
    return false;
  }
  if (node->kind != ConfigNode::Kind::kMap) {
    error(*node, path,
          std::string("is ") + kind_name(node->kind) + "; write it as a map, { key: value, ... }");
    return false;
  }
  push(node, std::move(path));
  return true;
}

void ConfigReader::close() {
  const Frame frame = std::move(open_.back());
  open_.pop_back();
  for (const ConfigNode& node : frame.node->children) {
    if (std::find(frame.known.begin(), frame.known.end(), node.key) != frame.known.end()) continue;
    error(node, join_key(frame.path, node.key.substr(0, kMaxQuoted)),
          "unknown key" + suggestion(node.key, frame.known));
  }
}

std::optional<std::size_t> ConfigReader::open_list(Key key, std::size_t, Range<std::size_t> range) {
  const ConfigNode* node = child(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind != ConfigNode::Kind::kList) {
    error(*node, path_of(key),
          std::string("is ") + kind_name(node->kind) + "; write it as a list, one '-' an entry");
    return std::nullopt;
  }
  const std::size_t size = node->children.size();
  if (size < range.min || size > range.max) {
    error(*node, path_of(key),
          "has " + std::to_string(size) + " entries; give " + std::to_string(range.min) + " to " +
              std::to_string(range.max));
    return std::nullopt;
  }
  push(node, path_of(key));
  return size;
}

bool ConfigReader::open_item(std::size_t index) {
  const ConfigNode& item = open_.back().node->children[index];
  std::string path = open_.back().path + "[" + std::to_string(index) + "]";
  if (item.kind != ConfigNode::Kind::kMap) {
    error(item, path, std::string("is ") + kind_name(item.kind) + "; write it as a map, { key: value, ... }");
    return false;
  }
  push(&item, std::move(path));
  return true;
}

void ConfigReader::close_list() { open_.pop_back(); }

}  // namespace isthmus::core
