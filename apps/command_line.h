// The flags of one verb: what they are called, where their values go, and what --help says.
//
// Values have the units of the config file (core/units.h). A flag that was not given leaves its variable
// alone, so a verb fills its variables from the config first and lets the flags win.
//
// Threads: one.
// Memory:  keeps references to the variables until parse() has returned.
// Errors:  parse() prints what is wrong and gives the exit code.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "core/job_config.h"
#include "core/units.h"

namespace isthmus::apps {

class CommandLine {
 public:
  CommandLine(const std::string& verb, const std::string& purpose);
  ~CommandLine();

  enum class Need { kOptional, kRequired };

  // A word without a dash. `name` is for people: "CONFIG".
  void positional(const std::string& name, std::string& value, const std::string& help, Need need);

  // `names` is "--quiet" or "-q,--quiet".
  void flag(const std::string& names, bool& value, const std::string& help);
  void text(const std::string& names, std::string& value, const std::string& type, const std::string& help);
  void texts(const std::string& names, std::vector<std::string>& values, const std::string& type,
             const std::string& help);  // May be given many times.
  void number(const std::string& names, std::uint64_t& value, const std::string& help);
  void duration(const std::string& names, core::Duration& value, const std::string& help);
  void bytes(const std::string& names, std::uint64_t& value, const std::string& help);
  void rate(const std::string& names, std::uint64_t& bytes_per_sec, const std::string& help);

  // Anything else that is written as one word; `read` stores it. May be given many times.
  void custom(const std::string& names, const std::string& type, const std::string& help,
              std::function<Status(const std::string&)> read);

  // Shown at the end of --help.
  void examples(const std::string& text);

  // Nothing when the verb is to go on; otherwise the process's exit code: --help or an error was printed.
  std::optional<int> parse(Arguments arguments);

  // After parse(): whether the flag of this name ("--rate") was given.
  bool given(const std::string& name) const;

 private:
  template <typename T>
  void parsed(const std::string& names, T& value, const std::string& type, const std::string& help,
              Result<T> (*parse)(std::string_view));

  struct State;  // Hides CLI11, which takes long to compile.
  std::unique_ptr<State> state_;
};

}  // namespace isthmus::apps
