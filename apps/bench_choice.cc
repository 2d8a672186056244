#include "apps/bench_choice.h"

#include <algorithm>

#include "compression/codec.h"
#include "compression/cuda/device.h"
#include "core/config_file.h"
#include "core/suggest.h"
#include "core/units.h"

namespace isthmus::apps {
namespace {

constexpr std::string_view kBest = "cpu";
constexpr std::string_view kDevice = "cuda";

// The least that a config must say, for its reader to judge a codec by.
constexpr std::string_view kConfig =
    "job: bench\n"
    "regions: [{ name: here, servers: [{ lan: 127.0.0.1:1, shards: 1 }] }]\n"
    "trainer: { model: synthetic, stop: { steps: 1 } }\n";

Result<core::CodecConfig> read_codec(const std::string& text) {
  if (text.empty()) return Status(ErrorCode::kInvalidArgument, "a codec has a name");
  const std::string overrides[] = {"compression.wan=" + text};
  const auto config = core::parse_config(kConfig, "bench", overrides);
  if (!config.ok()) return config.status();
  return config->compression.wan;
}

bool is_word(const std::string& text) { return text.find_first_of("{:,") == std::string::npos; }

BackendChoice choice_of(const compression::Kernels& kernels) {
  const bool best = &kernels == &compression::best_kernels();
  return {best ? std::string(kBest) : std::string(kernels.name), &kernels};
}

}  // namespace

bool has_keep(const core::CodecConfig& config) {
  constexpr std::size_t kElements = 1 << 16;
  const auto bound = [&](double keep) {
    core::CodecConfig other = config;
    other.keep = keep;
    return compression::make_codec(other)->max_encoded_bytes(kElements);
  };
  return bound(0.01) != bound(0.5);
}

Result<std::vector<CodecChoice>> choose_codecs(std::span<const std::string> texts,
                                               std::span<const double> keeps) {
  std::vector<std::string> asked(texts.begin(), texts.end());
  if (asked.empty()) {
    for (const std::string_view name : core::names_of(core::CodecKind{})) asked.emplace_back(name);
  }
  std::vector<CodecChoice> choices;
  for (const std::string& text : asked) {
    const auto config = read_codec(text);
    if (!config.ok()) return config.status();
    if (!is_word(text) || keeps.empty() || !has_keep(*config)) {
      choices.push_back({text, *config});
      continue;
    }
    for (const double keep : keeps) {
      CodecChoice& choice = choices.emplace_back(CodecChoice{text, *config});
      choice.config.keep = keep;
      if (keeps.size() > 1) choice.name += " " + core::exact_share(keep);
    }
  }
  return choices;
}

Result<std::vector<BackendChoice>> choose_backends(std::span<const std::string> texts) {
  std::vector<BackendChoice> all;
  for (const compression::Kernels* kernels : compression::available_kernels())
    all.push_back(choice_of(*kernels));
  const Result<std::string> device = compression::device_name();
  if (device.ok()) all.push_back({std::string(kDevice), nullptr});
  if (texts.empty()) return std::vector<BackendChoice>{choice_of(compression::best_kernels())};
  std::vector<BackendChoice> chosen;
  for (const std::string& text : texts) {
    if (text == "all") return all;
    const auto found = std::ranges::find(all, text, &BackendChoice::name);
    if (found == all.end() && text == kDevice) return device.status();
    if (found == all.end()) {
      std::vector<std::string_view> names{"all"};
      for (const BackendChoice& choice : all) names.push_back(choice.name);
      std::string message = "there is no backend '" + text + "' on this machine, but";
      for (const std::string_view name : names) message += " " + std::string(name);
      return Status(ErrorCode::kInvalidArgument, message);
    }
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace isthmus::apps
