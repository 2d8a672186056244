// Protobuf metas as JSON, for what is kept in files.
//
// Threads: pure functions.
// Memory:  the text, and the meta.
// Errors:  from_json() takes hostile text: kCorruption says what it stumbles over, unknown names too.

#pragma once

#include <string>
#include <string_view>

#include "isthmus/status.h"

namespace google::protobuf {
class Message;
}

namespace isthmus::proto {

// Indented; names as in the schema; what has its default is left out.
std::string to_json(const google::protobuf::Message& message);

Status from_json(std::string_view text, google::protobuf::Message& message);

}  // namespace isthmus::proto
