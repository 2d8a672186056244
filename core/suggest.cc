#include "core/suggest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace isthmus::core {
namespace {

// No key is longer; a longer word is no slip of the finger, and must not cost time.
constexpr std::size_t kMaxWord = 64;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: a swap of neighbours looks two rows back.
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kMaxWord) return {};
  std::string_view best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, word.size() / 3);
  for (std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(lower(word), lower(candidate));
    // Half of a short word changed is another word.
    if (distance < best_distance && distance * 2 <= candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  if (const std::string_view meant = nearest(word, candidates); !meant.empty()) {
    return "; did you mean '" + std::string(meant) + "'?";
  }
  std::string out;
  for (std::string_view candidate : candidates) {
    out += out.empty() ? "; choose from " : ", ";
    out += candidate;
  }
  return out;
}

}  // namespace isthmus::core
