// Where a run leaves what it made: summary.json, metrics.jsonl, model.safetensors, config.yaml, logs/.
//
// Threads: one.
// Memory:  small.
// Errors:  what cannot be written is a Status that names the file; a full disk is kResourceExhausted.

#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "core/job_config.h"
#include "isthmus/status.h"

namespace isthmus::apps {

class RunFolder {
 public:
  // Makes `folder`; empty: run/JOB/DATE-TIME, a new one. An existing folder must hold no run.
  static Result<RunFolder> create(const core::JobConfig& config, std::filesystem::path folder);
  // Where create() puts a run of this job when no folder is given.
  static std::filesystem::path new_path(const std::string& job);
  // One that holds a run of this config already, which goes on.
  static Result<RunFolder> reopen(const core::JobConfig& config, std::filesystem::path folder);

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path model() const { return path_ / "model.safetensors"; }
  std::filesystem::path log(
      const std::string& process) const;  // "frankfurt/worker 1" -> logs/frankfurt-worker-1.log

  Status write_summary(const std::string& json) const;
  Status append_metrics(const std::string& json);

 private:
  static Result<RunFolder> open(const core::JobConfig& config, const std::filesystem::path& folder);
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::ofstream metrics_;
};

}  // namespace isthmus::apps
