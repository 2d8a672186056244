// A YAML file as a tree that remembers where each key was written. yaml-cpp is known to its .cc alone.
//
// Only what a config needs: maps, lists and scalars. Aliases, keys that are no scalar, a second document
// and absurd sizes or depths are refused, so no file can make us build more than it holds.
//
// Threads: values; pure functions.
// Memory:  a tree owns its children; at most kMaxConfigNodes of them.
// Errors:  collected, each with its line. Exceptions of yaml-cpp end here.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::core {

inline constexpr std::size_t kMaxConfigBytes = 1 << 20;
inline constexpr std::size_t kMaxConfigNodes = 20'000;
inline constexpr std::size_t kMaxConfigDepth = 32;

// Where a value comes from when no line of the file holds it.
inline constexpr int kFromSet = 0;

struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 1;                      // Of its key or, in a list, of itself; kFromSet for an override.
  std::string key;                   // In a map.
  std::string text;                  // kScalar
  std::vector<ConfigNode> children;  // kList, kMap

  const ConfigNode* find(std::string_view child_key) const;  // nullptr: none of that name.
};

struct ConfigError {
  int line = 1;         // kFromSet: an override.
  std::string key;      // "regions[1].servers[0].lan"; empty: the file as such.
  std::string message;  // What; how to fix.
};

// What could be read of `text`, and what is wrong with it.
ConfigNode parse_config_tree(std::string_view text, std::vector<ConfigError>& errors);

// "trainer.stop.steps=100" or "regions[0].workers=3"; the value is YAML, an empty one removes the key.
void apply_override(ConfigNode& root, std::string_view assignment, std::vector<ConfigError>& errors);

// The line of the key `path`, or of the nearest thing around it that the file holds.
int line_of(const ConfigNode& root, std::string_view path);

// "sync" and "every" give "sync.every".
std::string join_key(std::string_view path, std::string_view key);

}  // namespace isthmus::core
