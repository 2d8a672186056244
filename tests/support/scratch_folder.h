// A folder for one test's files, gone with the test.
//
// Threads: one.  Memory: none.  Errors: a folder that cannot be made fails the test's first use of it.

#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace isthmus {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "isthmus-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data()) != nullptr ? name : std::string("no-scratch-folder");
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const noexcept { return path_; }

  // Writes the file and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace isthmus
