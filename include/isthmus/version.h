// The version of the library and of what it speaks.
//
// Threads: constants.  Memory: none.  Errors: none.

#pragma once

#include <string_view>

namespace isthmus {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace isthmus
