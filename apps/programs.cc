#include "apps/programs.h"

#include <filesystem>
#include <system_error>

namespace isthmus::apps {

std::string this_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "isthmus" : path.string();
}

std::string trainer_program() {
  return (std::filesystem::path(this_program()).parent_path() / "isthmus-trainer").string();
}

}  // namespace isthmus::apps
