#include "apps/evaluator_process.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

namespace isthmus::apps {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024;
constexpr std::size_t kLastLines = 8;

Result<EvaluatorProcess::Answer> parse(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return Status(ErrorCode::kInternal, "evaluator: unexpected answer: " + line);
  // It answers, so this is no lack of a connection: the job could not be judged, or not be written.
  if (json.contains("error")) return Status(ErrorCode::kFailed, json.value("error", ""));
  EvaluatorProcess::Answer answer;
  answer.step = json.value("step", Step{0});
  answer.accuracy = json.value("accuracy", 0.0);
  answer.loss = json.value("loss", 0.0);
  answer.difference = json.value("difference", 0.0f);
  answer.largest = json.value("largest", 0.0f);
  return answer;
}

}  // namespace

Result<EvaluatorProcess> EvaluatorProcess::start(ProcessOptions options,
                                                 std::function<void(const std::string&)> say) {
  options.pipe = true;
  auto process = Process::start(options);
  if (!process.ok()) return std::move(process).status();
  return EvaluatorProcess(std::move(options), *std::move(process), std::move(say));
}

void EvaluatorProcess::ask(const std::string& request) {
  request_ = request + "\n";
  send();
}

// A pipe takes a line at once: they are short, and the one before has been answered. If the process has just
// ended, take() sees it and sends the request to the next.
void EvaluatorProcess::send() {
  [[maybe_unused]] const ssize_t n = write(process_.input_fd(), request_.data(), request_.size());
}

void EvaluatorProcess::start_again() {
  line_.clear();
  std::string why = how_it_ended(process_, kLastLines);
  if (restarts_++ == kMaxRestarts) {
    failure_ = Status(ErrorCode::kFailed, "the model cannot be judged: " + std::move(why));
    return;
  }
  say_(why + "\nthe evaluator is started again");
  auto process = Process::start(options_);
  if (!process.ok()) {
    failure_ = std::move(process).status();
    return;
  }
  process_ = *std::move(process);
  if (busy()) send();
}

std::optional<Result<EvaluatorProcess::Answer>> EvaluatorProcess::take() {
  char bytes[4096];
  while (!gone()) {
    const ssize_t n = read(process_.output_fd(), bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0 || line_.size() > kMaxLine) {
      start_again();
      continue;
    }
    line_.append(bytes, static_cast<std::size_t>(n));
    const std::size_t end = line_.find('\n');
    if (end == std::string::npos) continue;
    const std::string line = line_.substr(0, end);
    line_.erase(0, end + 1);
    request_.clear();
    return parse(line);
  }
  request_.clear();
  return failure_;
}

}  // namespace isthmus::apps
