// Shared libraries, loaded when asked for; a missing symbol is an ordinary answer.
#pragma once

#include <string>

#include "base/core/result.h"
#include "os/core/fd.h"
#include "os/core/root.h"

namespace penstock::os {

/// A library loaded by dlopen. Not thread-safe while loading; Symbol may be called from any thread.
class Library {
 public:
  /// Loads a file by path, or by SONAME through the system's own search path. kNotFound where there is none, kFailedPrecondition where the
  /// file is there and cannot be loaded (another architecture, a truncated file, a libc too old); the message is dlerror's.
  static base::Result<Library> Load(const std::string& path);

  /// Loads a file of a root through /proc/self/fd, since the root's absolute links would lead into our own files.
  static base::Result<Library> LoadFrom(const Root& root, const std::string& path);

  Library(Library&& other) noexcept;
  Library& operator=(Library&& other) noexcept;
  ~Library();

  /// The symbol's address, or null where the library lacks it.
  void* Symbol(const char* name) const;

 private:
  Library(void* handle, std::string name, UniqueFd file) : handle_(handle), name_(std::move(name)), file_(std::move(file)) {}
  void Close();

  void* handle_ = nullptr;
  std::string name_;
  UniqueFd file_;  // open as long as the library is: the loader knows it by the descriptor's number
};

}  // namespace penstock::os
