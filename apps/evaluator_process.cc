#include "apps/evaluator_process.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

namespace isthmus::apps {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024;

Result<EvaluatorProcess::Answer> parse(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return Status(ErrorCode::kInternal, "evaluator: unexpected answer: " + line);
  // It answers, so this is no lack of a connection: the job could not be judged, or not be written.
  if (json.contains("error")) return Status(ErrorCode::kResourceExhausted, json.value("error", ""));
  EvaluatorProcess::Answer answer;
  answer.step = json.value("step", Step{0});
  answer.accuracy = json.value("accuracy", 0.0);
  answer.loss = json.value("loss", 0.0);
  answer.difference = json.value("difference", 0.0f);
  answer.largest = json.value("largest", 0.0f);
  return answer;
}

}  // namespace

Status EvaluatorProcess::ask(const std::string& request) {
  const std::string line = request + "\n";
  // A pipe takes a line at once: they are short, and the one before has been answered.
  if (write(process_.input_fd(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return {ErrorCode::kUnavailable, "the evaluator takes no requests"};
  busy_ = true;
  return {};
}

std::optional<Result<EvaluatorProcess::Answer>> EvaluatorProcess::take() {
  char bytes[4096];
  while (true) {
    const ssize_t n = read(process_.output_fd(), bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0 || line_.size() > kMaxLine) {
      busy_ = false;
      return Status(ErrorCode::kUnavailable, "the evaluator has ended");
    }
    line_.append(bytes, static_cast<std::size_t>(n));
    const std::size_t end = line_.find('\n');
    if (end == std::string::npos) continue;
    const std::string line = line_.substr(0, end);
    line_.erase(0, end + 1);
    busy_ = false;
    return parse(line);
  }
}

}  // namespace isthmus::apps
