#include "core/config_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace isthmus::core {
namespace {

// The keys in the first column of the tables of docs/configuration.md: "| `sync.every` | ...".
std::multiset<std::string> documented_keys() {
  std::ifstream doc(ISTHMUS_SOURCE_DIR "/docs/configuration.md");
  EXPECT_TRUE(doc.is_open());
  std::multiset<std::string> keys;
  for (std::string line; std::getline(doc, line);) {
    if (!line.starts_with("| `")) continue;
    keys.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

TEST(ConfigSchemaTest, EveryKeyIsDocumentedOnce) {
  const std::multiset<std::string> documented = documented_keys();
  for (const std::string& key : config_keys()) EXPECT_EQ(documented.count(key), 1u) << key;
}

TEST(ConfigSchemaTest, EveryDocumentedKeyExists) {
  const std::vector<std::string> keys = config_keys();
  for (const std::string& key : documented_keys())
    EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 1) << key;
}

TEST(ConfigSchemaTest, ListsNestedKeysAndKeysOfLists) {
  const std::vector<std::string> keys = config_keys();
  for (const char* key :
       {"job", "regions[].name", "regions[].servers[].wan_bind", "sync.staleness.hard",
        "links.emulate.outages[].after", "trainer.synthetic.spin", "compression.wan.keep"}) {
    EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 1) << key;
  }
}

}  // namespace
}  // namespace isthmus::core
