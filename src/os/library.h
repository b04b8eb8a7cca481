// Loads shared libraries at run time; a missing symbol is not an error.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "os/core/fd.h"
#include "os/core/root.h"

namespace penstock::os {

/// A library loaded by dlopen. Loading is not thread-safe; Symbol may be called from any thread.
class Library {
 public:
  /// Loads a file by path, or by SONAME through the system's search path. kNotFound if there is
  /// none; kFailedPrecondition if the file exists but cannot be loaded (another architecture, a
  /// truncated file, a libc too old). The message is dlerror's.
  static base::Result<Library> Load(const std::string& path);

  /// Loads a file of a root through /proc/self/fd, since the root's absolute links would otherwise
  /// lead to this process's own files.
  static base::Result<Library> LoadFrom(const Root& root, const std::string& path);

  Library(Library&& other) noexcept;
  Library& operator=(Library&& other) noexcept;
  ~Library();

  /// The symbol's address, or null where the library lacks it.
  void* Symbol(const char* name) const;

 private:
  Library(void* handle, std::string name, UniqueFd file)
      : handle_(handle), name_(std::move(name)), file_(std::move(file)) {}
  void Close();

  void* handle_ = nullptr;
  std::string name_;
  UniqueFd file_;  // open as long as the library is: the loader identifies it by the descriptor's
                   // number
};

/// Loads the library `file` that is installed, or was built, beside this program; if there is none
/// or it cannot be loaded (logged), the libraries of the system that it replaces. `what` names it
/// in the log: "OpenSSL". Not thread-safe.
base::Result<std::vector<Library>> LoadBundled(const std::string& file, const std::string& what,
                                               const std::vector<std::string>& replaces);

/// Looks up functions in several libraries, each from the first library that has it, and remembers
/// the first function that none has. The libraries must outlive this object.
class Symbols {
 public:
  explicit Symbols(std::span<const Library> libraries) : libraries_(libraries) {}

  /// Null if no library has it.
  template <typename Function>
  void Take(Function*& function, const char* name) {
    function = nullptr;
    for (const Library& library : libraries_)
      if (function == nullptr) function = reinterpret_cast<Function*>(library.Symbol(name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  const std::span<const Library> libraries_;
  std::string missing_;
};

}  // namespace penstock::os
