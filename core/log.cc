#include "core/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cctype>
#include <memory>
#include <mutex>

namespace isthmus::core {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);
constexpr std::size_t kMaxKinds = 256;

std::string kind_of(std::string_view line) {
  std::string kind;
  for (const char c : line) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) kind += c;
  }
  return kind;
}

}  // namespace

std::optional<std::string> LineLimiter::pass(std::string_view line, TimePoint now) {
  if (kinds_.size() >= kMaxKinds)
    std::erase_if(kinds_, [&](const auto& kind) { return now - kind.second.last >= kInterval; });
  if (kinds_.size() >= kMaxKinds) return std::nullopt;
  const auto [found, fresh] = kinds_.try_emplace(kind_of(line), Kind{now, 0});
  Kind& kind = found->second;
  if (!fresh && now - kind.last < kInterval) {
    ++kind.kept_back;
    return std::nullopt;
  }
  std::string text(line);
  if (kind.kept_back > 0) text += " (and " + std::to_string(kind.kept_back) + " more like it)";
  kind = {now, 0};
  return text;
}

Log stderr_log(const std::string& name) {
  auto logger = std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %n: %v");
  logger->flush_on(spdlog::level::info);
  struct State {
    std::mutex mutex;
    LineLimiter limiter;
    SystemClock clock;
  };
  return [logger, state = std::make_shared<State>()](const std::string& line) {
    std::optional<std::string> text;
    {
      std::lock_guard lock(state->mutex);
      text = state->limiter.pass(line, state->clock.now());
    }
    if (text) logger->info("{}", *text);
  };
}

}  // namespace isthmus::core
