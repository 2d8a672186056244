#include "apps/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>

#include "apps/report.h"
#include "core/suggest.h"

namespace isthmus::apps {

struct CommandLine::State {
  explicit State(const std::string& name, const std::string& purpose) : verb(name), app(purpose) {
    app.name("isthmus " + verb);
    app.allow_extras();  // So that what is unexpected gets our words and a suggestion.
    app.get_formatter()->column_width(36);
  }

  // A value whose text is read after CLI11 is done: CLI11 wants exceptions.
  struct Custom {
    CLI::Option* option;
    std::vector<std::string> texts;
    std::function<Status(const std::string&)> read;
  };

  Status read_customs() {
    for (const Custom& custom : customs)
      for (const std::string& text : custom.texts)
        if (Status status = custom.read(text); !status.ok())
          return std::move(status).with_context(custom.option->get_name());
    return {};
  }

  Status unexpected() const {
    const std::vector<std::string> extras = app.remaining();
    if (extras.empty()) return {};
    std::string message = "did not expect '" + extras.front() + "'";
    if (extras.front().starts_with('-')) {
      std::vector<std::string> names;
      for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      const std::vector<std::string_view> views(names.begin(), names.end());
      const std::string_view near = core::nearest(extras.front(), views);
      if (!near.empty()) message += "; did you mean '" + std::string(near) + "'?";
    }
    return {ErrorCode::kInvalidArgument, message};
  }

  int fail(const Status& status) const {
    return report(
        Status(status.code(), verb + ": " + status.message() + "\nsee isthmus " + verb + " --help"));
  }

  std::string verb;
  CLI::App app;
  std::deque<Custom> customs;  // CLI11 keeps their addresses.
};

CommandLine::CommandLine(const std::string& verb, const std::string& purpose)
    : state_(std::make_unique<State>(verb, purpose)) {}

CommandLine::~CommandLine() = default;

void CommandLine::positional(const std::string& name, std::string& value, const std::string& help,
                             Need need) {
  state_->app.add_option(name, value, help)->required(need == Need::kRequired)->type_name("");
}

void CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  state_->app.add_flag(names, value, help);
}

void CommandLine::text(const std::string& names, std::string& value, const std::string& type,
                       const std::string& help) {
  state_->app.add_option(names, value, help)->type_name(type);
}

void CommandLine::texts(const std::string& names, std::vector<std::string>& values, const std::string& type,
                        const std::string& help) {
  state_->app.add_option(names, values, help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::custom(const std::string& names, const std::string& type, const std::string& help,
                         std::function<Status(const std::string&)> read) {
  State::Custom& custom = state_->customs.emplace_back();
  custom.read = std::move(read);
  custom.option = state_->app.add_option(names, custom.texts, help)
                      ->type_name(type)
                      ->expected(1)
                      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

template <typename T>
void CommandLine::parsed(const std::string& names, T& value, const std::string& type, const std::string& help,
                         Result<T> (*parse)(std::string_view)) {
  custom(names, type, help, [&value, parse](const std::string& text) -> Status {
    Result<T> result = parse(text);
    if (!result.ok()) return std::move(result).status();
    value = *result;
    return {};
  });
}

void CommandLine::number(const std::string& names, std::uint64_t& value, const std::string& help) {
  parsed(names, value, "N", help, &core::parse_integer);
}
void CommandLine::duration(const std::string& names, core::Duration& value, const std::string& help) {
  parsed(names, value, "TIME", help, &core::parse_duration);
}
void CommandLine::bytes(const std::string& names, std::uint64_t& value, const std::string& help) {
  parsed(names, value, "SIZE", help, &core::parse_bytes);
}
void CommandLine::rate(const std::string& names, std::uint64_t& bytes_per_sec, const std::string& help) {
  parsed(names, bytes_per_sec, "RATE", help, &core::parse_rate);
}

void CommandLine::examples(const std::string& text) { state_->app.footer(text); }

std::optional<int> CommandLine::parse(Arguments arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // As CLI11 wants them.
  try {
    state_->app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    std::fputs(state_->app.help().c_str(), stdout);
    return kExitOk;
  } catch (const CLI::Error& error) {
    return state_->fail(Status(ErrorCode::kInvalidArgument, error.what()));
  }
  if (Status status = state_->unexpected(); !status.ok()) return state_->fail(status);
  if (Status status = state_->read_customs(); !status.ok()) return state_->fail(status);
  return std::nullopt;
}

bool CommandLine::given(const std::string& name) const {
  const CLI::Option* option = state_->app.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

}  // namespace isthmus::apps
