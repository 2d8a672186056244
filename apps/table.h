// Rows of words as columns that line up, for a terminal or a pipe.
//
// Threads: one.  Memory: owns its words.  Errors: none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::apps {

class Table {
 public:
  // One word a column. A column whose title begins with '>' is set to the right, as numbers are.
  explicit Table(std::vector<std::string> titles);

  // Missing words are empty. REQUIRES: no more words than titles.
  void add(std::vector<std::string> words);

  // Titles and rows, each a line, `indent` spaces before it and none at its end. Two spaces between columns.
  std::string to_string(std::size_t indent = 0) const;

 private:
  std::vector<bool> to_the_right_;
  std::vector<std::vector<std::string>> rows_;  // [0] has the titles.
};

// "1 server", "2 servers".
std::string count_of(std::uint64_t count, const std::string& singular);

// "235,146"
std::string grouped(std::uint64_t number);

}  // namespace isthmus::apps
