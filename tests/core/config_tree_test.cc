#include "core/config_tree.h"

#include <gtest/gtest.h>

namespace isthmus::core {
namespace {

struct Parsed {
  ConfigNode root;
  std::vector<ConfigError> errors;
};

Parsed parse(std::string_view text, const std::vector<std::string>& overrides = {}) {
  Parsed out;
  out.root = parse_config_tree(text, out.errors);
  for (const std::string& assignment : overrides) apply_override(out.root, assignment, out.errors);
  return out;
}

// "line: key: message", one a line.
std::string errors_of(const Parsed& parsed) {
  std::string out;
  for (const ConfigError& e : parsed.errors)
    out += std::to_string(e.line) + ": " + e.key + ": " + e.message + "\n";
  return out;
}

const ConfigNode& at(const ConfigNode& node, std::string_view key) {
  static const ConfigNode none;
  const ConfigNode* found = node.find(key);
  return found == nullptr ? none : *found;
}

TEST(ConfigTreeTest, KeepsValuesAndLines) {
  const Parsed parsed = parse("a: 1\nb:\n  c: 8 steps\n  d: [x, y]\ne:\n");
  EXPECT_EQ(errors_of(parsed), "");
  EXPECT_EQ(at(parsed.root, "a").text, "1");
  EXPECT_EQ(at(at(parsed.root, "b"), "c").text, "8 steps");
  EXPECT_EQ(at(at(parsed.root, "b"), "c").line, 3);
  EXPECT_EQ(at(at(parsed.root, "b"), "d").children.size(), 2u);
  EXPECT_EQ(at(parsed.root, "e").kind, ConfigNode::Kind::kNull);
  EXPECT_EQ(at(parsed.root, "e").line, 5);
}

TEST(ConfigTreeTest, ADuplicateKeyIsAnErrorThatNamesBothLines) {
  EXPECT_EQ(errors_of(parse("a: 1\nb: { c: 1,\n  c: 2 }\na: 3\n")),
            "3: b.c: duplicate key; it is already on line 2\n"
            "4: a: duplicate key; it is already on line 1\n");
}

TEST(ConfigTreeTest, ASyntaxErrorSaysWhere) {
  const Parsed parsed = parse("a: 1\nb: [1, 2\nc: 3\n");
  ASSERT_EQ(parsed.errors.size(), 1u);
  EXPECT_GE(parsed.errors[0].line, 2);
  EXPECT_NE(parsed.errors[0].message.find("not YAML"), std::string::npos);
}

TEST(ConfigTreeTest, RefusesWhatNoConfigNeeds) {
  EXPECT_EQ(errors_of(parse("a: &x 1\nb: *x\n")),
            "2: : aliases ('*name') are not supported; repeat the value\n");
  EXPECT_EQ(errors_of(parse("a: 1\n---\nb: 2\n")),
            "2: : a second document; a job is one ('---' once at most)\n");
  EXPECT_EQ(errors_of(parse("a:\n  ? [1, 2]\n  : x\n")),
            "2: a: a key must be a word; quote it if it starts with '{' or '['\n");
}

TEST(ConfigTreeTest, HostileFilesAreErrorsAndNothingElse) {
  std::string bomb = "a: &a [x, x]\n";
  for (char c = 'b'; c < 'z'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [*" + static_cast<char>(c - 1) + ", *" +
            static_cast<char>(c - 1) + "]\n";
  }
  EXPECT_EQ(parse(bomb).errors.size(), 1u);
  EXPECT_EQ(errors_of(parse("a: " + std::string(40, '[') + std::string(40, ']'))).find("nested too deeply") ==
                std::string::npos,
            false);
  for (const char* unit :
       {"[", "{", "- ", "? ", "a: {", "&a ", "!!", "\"", "%", "*", "|\n", "\t", "\xff", "\xef\xbb\xbf"}) {
    std::string text;
    while (text.size() < 20'000) text += unit;
    EXPECT_FALSE(parse(text).errors.empty() && parse(text).root.children.size() > 1) << unit;
  }
  EXPECT_FALSE(parse(std::string(kMaxConfigBytes + 1, ' ')).errors.empty());
  std::string many;
  for (std::size_t i = 0; i <= kMaxConfigNodes; ++i) many += "- 1\n";
  EXPECT_FALSE(parse(many).errors.empty());
}

TEST(ConfigTreeTest, OverridesReplaceAddAndRemove) {
  const Parsed parsed =
      parse("a: { b: 1, c: 2 }\nlist: [{ n: 1 }, { n: 2 }]\n",
            {"a.b=7", "a.c=", "new.deep.key=8 steps", "list[1].n=3", "m={x: 1, y: [1, 2]}"});
  EXPECT_EQ(errors_of(parsed), "");
  EXPECT_EQ(at(at(parsed.root, "a"), "b").text, "7");
  EXPECT_EQ(at(at(parsed.root, "a"), "b").line, kFromSet);
  EXPECT_EQ(at(parsed.root, "a").find("c"), nullptr);
  EXPECT_EQ(at(at(at(parsed.root, "new"), "deep"), "key").text, "8 steps");
  EXPECT_EQ(at(at(parsed.root, "list").children[1], "n").text, "3");
  EXPECT_EQ(at(at(parsed.root, "list").children[0], "n").text, "1");
  EXPECT_EQ(at(at(parsed.root, "m"), "y").children.size(), 2u);
}

TEST(ConfigTreeTest, TheLaterOverrideWins) {
  EXPECT_EQ(at(parse("a: 1\n", {"a=2", "a=3"}).root, "a").text, "3");
}

TEST(ConfigTreeTest, BadOverridesAreErrors) {
  for (const char* text :
       {"", "=", "a", "=1", "a..b=1", ".a=1", "a.=1", "a[=1", "a[x]=1", "a[0=1", "a[0]x=1", "a.b=1", "a[5]=1",
        "list[9].n=1", "list[0]=", "a=[1", "a={x: 1, x: 2}", "a=*x", "list[99999999999999999999]=1"}) {
    const Parsed parsed = parse("a: 1\nlist: [{ n: 1 }]\n", {text});
    ASSERT_EQ(parsed.errors.size(), 1u) << text;
    EXPECT_EQ(parsed.errors[0].line, kFromSet) << text;
  }
}

TEST(ConfigTreeTest, FindsTheNearestLine) {
  const Parsed parsed = parse("a: 1\nlist:\n  - n: 1\n  - n: 2\n    m: 3\n");
  EXPECT_EQ(line_of(parsed.root, "list[1].m"), 5);
  EXPECT_EQ(line_of(parsed.root, "list[1].absent"), 4);
  EXPECT_EQ(line_of(parsed.root, "list[7].n"), 2);
  EXPECT_EQ(line_of(parsed.root, "absent.key"), 1);
}

}  // namespace
}  // namespace isthmus::core
