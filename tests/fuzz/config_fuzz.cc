// The config file: any text is refused with words, or read and written back to the same config.

#include <string>

#include "core/config_file.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  // What comes after a 0 is an override, as `--set` has them.
  std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> overrides;
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    overrides.push_back(text.substr(zero + 1));
    text.resize(zero);
  }
  const auto config = core::parse_config(text, "fuzz.yaml", overrides);
  if (!config.ok()) {
    FUZZ_EXPECT(config.status().code() == ErrorCode::kInvalidArgument);
    FUZZ_EXPECT(!config.status().message().empty());
    return 0;
  }
  const std::string written = core::to_yaml(*config);
  const auto again = core::parse_config(written, "again.yaml");
  FUZZ_EXPECT(again.ok());
  FUZZ_EXPECT(core::to_yaml(*again) == written);
  return 0;
}
