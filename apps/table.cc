#include "apps/table.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace isthmus::apps {

Table::Table(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    to_the_right_.push_back(title.starts_with('>'));
    if (to_the_right_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

void Table::add(std::vector<std::string> words) {
  ISTHMUS_CHECK(words.size() <= to_the_right_.size());
  words.resize(to_the_right_.size());
  rows_.push_back(std::move(words));
}

std::string Table::to_string(std::size_t indent) const {
  std::vector<std::size_t> widths(to_the_right_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i > 0) line += "  ";
      line += to_the_right_[i] ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string count_of(std::uint64_t count, const std::string& singular) {
  return grouped(count) + " " + singular + (count == 1 ? "" : "s");
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

}  // namespace isthmus::apps
