// `isthmus keys`: makes a job's certificates, and says which machine needs which.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/command_line.h"
#include "apps/report.h"
#include "core/config_file.h"
#include "wan/certificates.h"

namespace isthmus::apps {
namespace {

struct KeysOptions {
  std::string job;
  std::vector<std::string> regions;
  std::string directory = "keys";
  bool new_ca = false;
};

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

// What the config says; flags that were given win.
Status complete(KeysOptions& options, const std::string& config_path, const CommandLine& line) {
  if (config_path.empty()) {
    if (options.job.empty() || options.regions.empty())
      return {ErrorCode::kInvalidArgument, "keys: give the job's config file, or --job and --regions"};
    return {};
  }
  auto config = core::load_config(config_path);
  if (!config.ok()) return std::move(config).status();
  if (!line.given("--job")) options.job = config->job;
  if (!line.given("--directory")) options.directory = config->security.directory;
  if (!line.given("--regions"))
    for (const core::RegionConfig& region : config->regions) options.regions.push_back(region.name);
  return {};
}

void print(const KeysOptions& options, const std::vector<std::string>& written) {
  const auto state = [&](const std::string& path) {
    return std::find(written.begin(), written.end(), path) != written.end() ? "made" : "kept";
  };
  const std::string ca = wan::key_files(options.directory, options.regions.front()).ca;
  std::printf("%s  %s\n", state(ca), ca.c_str());
  for (const std::string& region : options.regions) {
    const wan::KeyFiles files = wan::key_files(options.directory, region);
    std::printf("%s  %s\n%s  %s\n", state(files.certificate), files.certificate.c_str(), state(files.key),
                files.key.c_str());
  }
  std::printf("\nCopy to the machines of\n");
  for (const std::string& region : options.regions) {
    const wan::KeyFiles files = wan::key_files(options.directory, region);
    std::printf("  %s: %s %s %s\n", region.c_str(), files.ca.c_str(), files.certificate.c_str(),
                files.key.c_str());
  }
  std::printf(
      "Whoever has a .key is that region, and whoever has ca.key can make more of them: copy them over a\n"
      "channel that you trust, and leave ca.key here.\n");
}

}  // namespace

int run_keys(Arguments arguments) {
  KeysOptions options;
  std::string config_path;
  CommandLine line("keys",
                   "Makes the job's certificate authority and a certificate for each region. What is there "
                   "and still good is kept.");
  line.positional("CONFIG", config_path, "the job's config file", CommandLine::Need::kOptional);
  line.text("--job", options.job, "NAME", "the job, instead of the config's");
  line.custom("--regions", "A,B,...", "the regions, instead of the config's", [&](const std::string& text) {
    for (const std::string& region : split_at_commas(text)) options.regions.push_back(region);
    return Status();
  });
  line.text("--directory", options.directory, "FOLDER", "where they are kept, instead of the config's");
  line.flag(
      "--new-ca", options.new_ca,
      "begin anew: a new authority and new certificates for all regions, which stop trusting the old ones");
  line.examples(
      "isthmus keys job.yaml\n"
      "isthmus keys --job demo --regions frankfurt,virginia --directory keys");
  if (const auto code = line.parse(arguments)) return *code;
  if (Status status = complete(options, config_path, line); !status.ok()) return report(status);

  const auto written = wan::ensure_keys(options.directory, options.job, options.regions,
                                        options.new_ca ? wan::ExistingCa::kReplace : wan::ExistingCa::kKeep);
  if (!written.ok()) return report(written.status());
  print(options, *written);
  return kExitOk;
}

}  // namespace isthmus::apps
