// "Did you mean ...?" for a mistyped word.
//
// Threads: pure functions.  Memory: results own or view what was given.  Errors: none.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace isthmus::core {

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that `word` most likely meant, letter case aside; empty when none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean 'every'?" or else "; choose from a, b, c". Ready to follow a message.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace isthmus::core
