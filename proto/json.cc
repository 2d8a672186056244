#include "proto/json.h"

#include <google/protobuf/util/json_util.h>

namespace isthmus::proto {

std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);  // Fails for no known type.
  return text;
}

Status from_json(std::string_view text, google::protobuf::Message& message) {
  const auto status = google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &message);
  if (status.ok()) return {};
  return {ErrorCode::kCorruption, std::string(status.message())};
}

}  // namespace isthmus::proto
