#include "core/config_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "core/config_check.h"
#include "core/config_reader.h"
#include "core/config_schema.h"
#include "core/config_tree.h"
#include "core/config_writer.h"

namespace isthmus::core {
namespace {

// A screenful; whoever has more wrong than that starts at the top anyway.
constexpr std::size_t kMaxErrors = 20;

Status to_status(const std::vector<ConfigError>& errors, std::string_view file_name) {
  std::string message;
  for (std::size_t i = 0; i < std::min(errors.size(), kMaxErrors); ++i) {
    const ConfigError& error = errors[i];
    if (i > 0) message += '\n';
    if (error.line == kFromSet) {
      message += "--set";
    } else {
      message += std::string(file_name) + ":" + std::to_string(error.line);
    }
    if (!error.key.empty()) message += ": " + error.key;
    message += ": " + error.message;
  }
  if (errors.size() > kMaxErrors)
    message += "\n... and " + std::to_string(errors.size() - kMaxErrors) + " more";
  return Status(ErrorCode::kInvalidArgument, std::move(message));
}

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument;
    return Status(code, path + ": cannot open the config: " + std::strerror(errno));
  }
  // One byte more than allowed, so that parsing sees that it is too many.
  std::string text(kMaxConfigBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return Status(ErrorCode::kInvalidArgument, path + ": cannot read the config: " + std::strerror(errno));
  }
  return text;
}

}  // namespace

Result<JobConfig> load_config(const std::string& path, std::span<const std::string> overrides) {
  Result<std::string> text = read_file(path);
  if (!text) return text.status();
  return parse_config(*text, path, overrides);
}

Result<JobConfig> parse_config(std::string_view text, std::string_view file_name,
                               std::span<const std::string> overrides) {
  std::vector<ConfigError> errors;
  ConfigNode root = parse_config_tree(text, errors);
  for (const std::string& assignment : overrides) apply_override(root, assignment, errors);
  if (!errors.empty()) return to_status(errors, file_name);

  JobConfig config;
  ConfigReader reader(root, errors);
  visit_config(reader, config);
  reader.finish();
  // In the order of the file; --set comes first.
  std::stable_sort(errors.begin(), errors.end(),
                   [](const ConfigError& a, const ConfigError& b) { return a.line < b.line; });
  if (!errors.empty()) return to_status(errors, file_name);

  // Each job has a CA of its own, so jobs do not share a folder of keys unless somebody says so.
  if (config.security.directory.empty()) config.security.directory = "keys/" + config.job;
  if (config.checkpoint && config.checkpoint->directory.empty())
    config.checkpoint->directory = default_checkpoint_directory(config.job);

  for (ConfigProblem& problem : find_problems(config)) {
    errors.push_back({line_of(root, problem.key), std::move(problem.key), std::move(problem.message)});
  }
  if (!errors.empty()) return to_status(errors, file_name);
  return config;
}

std::string to_yaml(const JobConfig& config) {
  JobConfig copy = config;  // The walk could change it; the writer does not.
  ConfigWriter writer;
  visit_config(writer, copy);
  return std::move(writer).take();
}

}  // namespace isthmus::core
