// A folder of its own for a test, gone with it.
//
// Threads: any.  Memory: a path.  Errors: a test that cannot have one fails its first write.

#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace isthmus::wan {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "isthmus-wan-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace isthmus::wan
