// A temporary folder for one test, removed at its end. For tests only.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace penstock::os {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(testing::TempDir() + "penstock-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
    path_ = std::filesystem::canonical(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& below) const { return path_ + "/" + below; }

  /// Writes a file below the folder, creating missing parent folders.
  void Write(const std::string& below, const std::string& content) const {
    const std::filesystem::path path = *this / below;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }

  /// Creates a symbolic link below the folder, creating missing parent folders.
  void Link(const std::string& below, const std::string& target) const {
    const std::filesystem::path path = *this / below;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  }

 private:
  std::string path_;
};

}  // namespace penstock::os
