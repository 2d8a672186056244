#include "apps/bench_inputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "compression/codec.h"
#include "core/random.h"
#include "core/safetensors.h"
#include "core/suggest.h"

namespace isthmus::apps {
namespace {

constexpr std::string_view kGaussian = "gaussian";
constexpr std::string_view kLaplace = "laplace";
constexpr std::string_view kHeavy = "heavy";
constexpr std::string_view kMade[] = {kGaussian, kLaplace, kHeavy};

constexpr std::uint64_t kSeed = 1;
constexpr std::uint32_t kStream = 0x62656e63;  // "benc"
constexpr std::size_t kHeavyBlock = 8;
constexpr double kHeavySpread = 1.25;

core::Random numbers(std::uint32_t which) { return {kSeed, {kStream, which, 0}}; }

void fill_gaussian(std::span<float> out) {
  core::Random random = numbers(0);
  for (float& value : out) value = static_cast<float>(random.normal());
}

void fill_laplace(std::span<float> out) {
  core::Random random = numbers(1);
  for (float& value : out) {
    const double magnitude = -std::log(1.0 - random.uniform());
    value = static_cast<float>(random.next_u32() % 2 == 0 ? magnitude : -magnitude);
  }
}

void fill_heavy(std::span<float> out) {
  core::Random random = numbers(2);
  double scale = 1.0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i % kHeavyBlock == 0) scale = std::exp(kHeavySpread * random.normal());
    out[i] = static_cast<float>(scale * random.normal());
  }
}

Status fill_from_file(const std::string& path, std::span<float> out) {
  const auto file = core::read_safetensors(path);
  if (!file.ok()) return file.status();
  std::vector<float> values;
  for (const auto& tensor : file->values) values.insert(values.end(), tensor.begin(), tensor.end());
  if (values.empty()) return {ErrorCode::kInvalidArgument, path + ": holds no values"};
  if (!compression::all_finite(values))
    return {ErrorCode::kInvalidArgument, path + ": holds values that are not finite"};
  for (std::size_t at = 0; at < out.size(); at += values.size())
    std::copy_n(values.begin(), std::min(values.size(), out.size() - at), out.begin() + at);
  return {};
}

}  // namespace

std::span<const std::string_view> made_inputs() { return kMade; }

bool is_input_file(std::string_view input) { return input.find_first_of("/.") != std::string_view::npos; }

std::string input_name(const std::string& input) {
  return is_input_file(input) ? std::filesystem::path(input).stem().string() : input;
}

Status fill_input(const std::string& input, std::span<float> out) {
  if (is_input_file(input)) return fill_from_file(input, out);
  if (input == kGaussian) {
    fill_gaussian(out);
  } else if (input == kLaplace) {
    fill_laplace(out);
  } else if (input == kHeavy) {
    fill_heavy(out);
  } else {
    return {ErrorCode::kInvalidArgument,
            "there is no input '" + input + "'" + core::suggestion(input, kMade)};
  }
  return {};
}

}  // namespace isthmus::apps
