#include "apps/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include "core/config_file.h"

namespace isthmus::apps {
namespace {

Status cannot_write(const std::filesystem::path& file, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return {full ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument,
          "cannot write " + file.string() + ": " + std::strerror(error)};
}

Status write_file(const std::filesystem::path& file, const std::string& text) {
  errno = 0;
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return out ? Status() : cannot_write(file, errno);
}

}  // namespace

std::filesystem::path RunFolder::new_path(const std::string& job) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  const std::filesystem::path base = std::filesystem::path("run") / job / text;
  std::filesystem::path folder = base;
  for (int i = 2; std::filesystem::exists(folder); ++i) folder = base.string() + "-" + std::to_string(i);
  return folder;
}

Result<RunFolder> RunFolder::create(const core::JobConfig& config, std::filesystem::path folder) {
  if (folder.empty()) folder = new_path(config.job);
  std::error_code error;
  if (std::filesystem::exists(folder / "config.yaml", error))
    return Status(ErrorCode::kInvalidArgument,
                  folder.string() + " holds a run already; give another --run folder");
  return open(config, folder);
}

Result<RunFolder> RunFolder::reopen(const core::JobConfig& config, std::filesystem::path folder) {
  return open(config, folder);
}

Result<RunFolder> RunFolder::open(const core::JobConfig& config, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder / "logs", error);
  if (error) return cannot_write(folder / "logs", error.value());
  RunFolder run(std::filesystem::absolute(folder));
  ISTHMUS_RETURN_IF_ERROR(write_file(run.config(), core::to_yaml(config)));
  run.metrics_.open(run.path_ / "metrics.jsonl", std::ios::app);
  if (!run.metrics_) return cannot_write(run.path_ / "metrics.jsonl", errno);
  return run;
}

std::filesystem::path RunFolder::log(const std::string& process) const {
  std::string name = process;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == ' '; }, '-');
  return path_ / "logs" / (name + ".log");
}

Status RunFolder::write_summary(const std::string& json) const {
  return write_file(path_ / "summary.json", json + "\n");
}

Status RunFolder::append_metrics(const std::string& json) {
  errno = 0;
  metrics_ << json << std::endl;
  return metrics_ ? Status() : cannot_write(path_ / "metrics.jsonl", errno);
}

}  // namespace isthmus::apps
