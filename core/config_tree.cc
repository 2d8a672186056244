#include "core/config_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <sstream>

namespace isthmus::core {
namespace {

// Builds the tree as yaml-cpp reports what it reads. After the first thing that cannot be held it ignores the
// rest.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(bool from_set, std::vector<ConfigError>& errors) : from_set_(from_set), errors_(errors) {}

  ConfigNode take() && { return std::move(root_); }
  bool stopped() const { return stopped_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { scalar(mark, ConfigNode::Kind::kNull, ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    stop(line(mark), "aliases ('*name') are not supported; repeat the value");
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    scalar(mark, ConfigNode::Kind::kScalar, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    begin(mark, ConfigNode::Kind::kList);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    begin(mark, ConfigNode::Kind::kMap);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Frame {
    ConfigNode* node;  // Stays put: its parent gains no child while it is open.
    std::string path;
    std::optional<std::string> key;  // Read, and its value not yet.
    int key_line = 1;
  };

  int line(const YAML::Mark& mark) const { return from_set_ ? kFromSet : mark.line + 1; }

  void stop(int at, std::string message) {
    if (!stopped_) errors_.push_back({at, open_.empty() ? "" : open_.back().path, std::move(message)});
    stopped_ = true;
  }

  bool wants_key() const {
    return !open_.empty() && open_.back().node->kind == ConfigNode::Kind::kMap && !open_.back().key;
  }

  void take_key(int at, const std::string& key) {
    Frame& frame = open_.back();
    if (const ConfigNode* first = frame.node->find(key)) {
      const std::string where = from_set_ ? "" : "; it is already on line " + std::to_string(first->line);
      errors_.push_back({at, join_key(frame.path, key), "duplicate key" + where});
    }
    frame.key = key;
    frame.key_line = at;
  }

  ConfigNode* add(const YAML::Mark& mark, ConfigNode::Kind kind) {
    if (++nodes_ > kMaxConfigNodes) {
      stop(line(mark), "the file is too large: more than " + std::to_string(kMaxConfigNodes) + " values");
      return nullptr;
    }
    ConfigNode* node = &root_;
    if (!open_.empty()) {
      Frame& frame = open_.back();
      node = &frame.node->children.emplace_back();
      node->line = line(mark);
      if (frame.key) {
        node->key = std::move(*frame.key);
        node->line = frame.key_line;
        frame.key.reset();
      }
    } else {
      node->line = line(mark);
    }
    node->kind = kind;
    return node;
  }

  void scalar(const YAML::Mark& mark, ConfigNode::Kind kind, const std::string& value) {
    if (stopped_) return;
    if (wants_key()) return take_key(line(mark), value);
    if (ConfigNode* node = add(mark, kind)) node->text = value;
  }

  void begin(const YAML::Mark& mark, ConfigNode::Kind kind) {
    if (stopped_) return;
    if (wants_key()) return stop(line(mark), "a key must be a word; quote it if it starts with '{' or '['");
    if (open_.size() == kMaxConfigDepth) return stop(line(mark), "nested too deeply");
    std::string path = open_.empty() ? "" : open_.back().path;
    if (!open_.empty() && open_.back().key) {
      path = join_key(path, *open_.back().key);
    } else if (!open_.empty()) {
      path += "[" + std::to_string(open_.back().node->children.size()) + "]";
    }
    if (ConfigNode* node = add(mark, kind)) open_.push_back({node, std::move(path), std::nullopt, 1});
  }

  void end() {
    if (!stopped_) open_.pop_back();
  }

  bool from_set_;
  std::vector<ConfigError>& errors_;
  ConfigNode root_;
  std::vector<Frame> open_;
  std::size_t nodes_ = 0;
  bool stopped_ = false;
};

// Tells whether a document comes after the first.
class AnyEvent : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
  int line = 1;
};

ConfigNode build(std::string_view text, bool from_set, std::vector<ConfigError>& errors) {
  if (text.size() > kMaxConfigBytes) {
    errors.push_back({from_set ? kFromSet : 1, "", "larger than 1 MiB; this is no config"});
    return {};
  }
  TreeBuilder builder(from_set, errors);
  int line = 1;
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    const bool any = parser.HandleNextDocument(builder);
    AnyEvent more;
    if (any && !builder.stopped() && parser.HandleNextDocument(more)) {
      errors.push_back(
          {from_set ? kFromSet : more.line, "", "a second document; a job is one ('---' once at most)"});
    }
  } catch (const YAML::Exception& e) {
    line = e.mark.is_null() ? 1 : e.mark.line + 1;
    const std::string column = e.mark.is_null() ? "" : " in column " + std::to_string(e.mark.column + 1);
    if (!builder.stopped())
      errors.push_back({from_set ? kFromSet : line, "", "not YAML" + column + ": " + e.msg});
  } catch (const std::exception& e) {
    errors.push_back({from_set ? kFromSet : line, "", std::string("cannot be read as YAML: ") + e.what()});
  }
  return std::move(builder).take();
}

// One part of "regions[0].servers[1].lan": a name, then indices.
struct PathPart {
  std::string_view name;
  std::vector<std::size_t> indices;
};

std::optional<std::vector<PathPart>> split_path(std::string_view path) {
  std::vector<PathPart> parts;
  while (true) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    std::string_view part = path.substr(0, dot);
    PathPart& out = parts.emplace_back();
    out.name = part.substr(0, part.find('['));
    part.remove_prefix(out.name.size());
    if (out.name.empty() || parts.size() > kMaxConfigDepth) return std::nullopt;
    while (!part.empty()) {
      const std::size_t close = part.find(']');
      if (part.front() != '[' || close == std::string_view::npos) return std::nullopt;
      std::size_t index = 0;
      const auto [at, error] = std::from_chars(part.data() + 1, part.data() + close, index);
      if (error != std::errc() || at != part.data() + close) return std::nullopt;
      out.indices.push_back(index);
      part.remove_prefix(close + 1);
    }
    if (dot == path.size()) return parts;
    path.remove_prefix(dot + 1);
  }
}

ConfigNode* find_mutable(ConfigNode& node, std::string_view key) {
  return const_cast<ConfigNode*>(static_cast<const ConfigNode&>(node).find(key));
}

// Goes down to `part`, making maps on the way; nullptr when something else is in its place.
ConfigNode* descend(ConfigNode& from, const PathPart& part) {
  if (from.kind == ConfigNode::Kind::kNull) from.kind = ConfigNode::Kind::kMap;
  if (from.kind != ConfigNode::Kind::kMap) return nullptr;
  ConfigNode* node = find_mutable(from, part.name);
  if (node == nullptr) {
    node = &from.children.emplace_back();
    node->key = part.name;
    node->line = kFromSet;
  }
  for (std::size_t index : part.indices) {
    if (node->kind != ConfigNode::Kind::kList || index >= node->children.size()) return nullptr;
    node = &node->children[index];
  }
  return node;
}

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view child_key) const {
  if (kind != Kind::kMap) return nullptr;
  const auto found =
      std::find_if(children.begin(), children.end(), [&](const ConfigNode& c) { return c.key == child_key; });
  return found == children.end() ? nullptr : &*found;
}

ConfigNode parse_config_tree(std::string_view text, std::vector<ConfigError>& errors) {
  return build(text, /*from_set=*/false, errors);
}

void apply_override(ConfigNode& root, std::string_view assignment, std::vector<ConfigError>& errors) {
  const std::size_t equals = assignment.find('=');
  const std::string_view path = assignment.substr(0, equals);
  const auto parts = equals == std::string_view::npos ? std::nullopt : split_path(path);
  if (!parts) {
    errors.push_back({kFromSet, std::string(assignment.substr(0, 64)),
                      "cannot be understood; write key=value, for example trainer.stop.steps=100"});
    return;
  }
  const std::size_t before = errors.size();
  ConfigNode value = build(assignment.substr(equals + 1), /*from_set=*/true, errors);
  for (std::size_t i = before; i < errors.size(); ++i) errors[i].key = join_key(path, errors[i].key);
  if (errors.size() != before) return;

  ConfigNode* parent = &root;
  for (std::size_t i = 0; i + 1 < parts->size() && parent != nullptr; ++i)
    parent = descend(*parent, (*parts)[i]);
  ConfigNode* node = parent == nullptr ? nullptr : descend(*parent, parts->back());
  if (node == nullptr) {
    errors.push_back({kFromSet, std::string(path),
                      "has no place in the file: something around it is no map, or no "
                      "list of that length; set the whole of what is around it"});
    return;
  }
  if (value.kind == ConfigNode::Kind::kNull) {
    if (!parts->back().indices.empty()) {
      errors.push_back(
          {kFromSet, std::string(path), "has no value, and an entry cannot be removed; set the whole list"});
      return;
    }
    std::erase_if(parent->children, [&](const ConfigNode& child) { return &child == node; });
    return;
  }
  value.key = node->key;
  value.line = kFromSet;
  *node = std::move(value);
}

int line_of(const ConfigNode& root, std::string_view path) {
  const auto parts = split_path(path);
  const ConfigNode* node = &root;
  int line = root.line;
  for (std::size_t i = 0; parts && i < parts->size(); ++i) {
    node = node->find((*parts)[i].name);
    if (node == nullptr) return line;
    line = node->line;
    for (std::size_t index : (*parts)[i].indices) {
      if (node->kind != ConfigNode::Kind::kList || index >= node->children.size()) return line;
      node = &node->children[index];
      line = node->line;
    }
  }
  return line;
}

std::string join_key(std::string_view path, std::string_view key) {
  if (path.empty()) return std::string(key);
  if (key.empty()) return std::string(path);
  return std::string(path) + "." + std::string(key);
}

}  // namespace isthmus::core
