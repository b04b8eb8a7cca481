// Creates files, folders, links and device nodes below one folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/core/result.h"

namespace penstock::sim {

/// Keeps the first failure, so that callers read as a list of files; after a failure, the remaining
/// files are still created. Paths are relative to the root. Not thread-safe.
///
/// A machine has hundreds of small files, many with equal content, and creating files is slow:
/// equal read-only files and equal links from one builder are hard links to one file. A file that
/// is already as required is left untouched, and any other is replaced in one step: a real
/// machine's files do not disappear for a moment because something else changes.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::string root) : root_(std::move(root)) {}

  std::string Path(const std::string& path) const { return root_ + "/" + path; }
  bool Exists(const std::string& path) const;

  /// Creates a file whose content ends with a newline, replacing whatever has that name.
  void File(const std::string& path, std::string_view content, unsigned mode = 0444);
  void Bytes(const std::string& path, const std::string& content, unsigned mode);
  void Folder(const std::string& path);
  void Link(const std::string& path, const std::string& target);
  /// Creates a new file beside the old one and then replaces it: a process that has the old one
  /// mapped keeps it whole. `edit` changes the copy before it gets its name.
  void Copy(
      const std::string& from, const std::string& path,
      const std::function<base::Status(const std::string&)>& edit = [](const std::string&) {
        return base::Status();
      });
  /// Creates a second name for a file of this tree.
  void HardLink(const std::string& from, const std::string& path);
  /// Creates a second name for a file outside the tree, or a copy where that is impossible: for
  /// files that no process writes.
  void Borrow(const std::string& from, const std::string& path);
  /// Creates a character device; an empty file of the same name if the kernel refuses to create or
  /// to open one here. The first device should be one that every user may open.
  void Device(const std::string& path, unsigned major_number, unsigned minor_number,
              unsigned mode = 0666);
  /// Creates the file of a socket on which no process listens.
  void Socket(const std::string& path);
  /// Removes a path with everything below it; a missing path is no error.
  void Remove(const std::string& path);

  bool can_make_devices() const { return can_make_devices_; }
  base::Status status() const {
    return error_.empty() ? base::Status()
                          : base::Status(base::Error(base::Code::kUnavailable, error_));
  }

 private:
  bool Replace(const std::string& path, const std::function<bool(const std::string& next)>& make);
  bool HasFile(const std::string& path, std::string_view content, unsigned mode) const;
  bool HasLink(const std::string& path, const std::string& target) const;
  bool IsNameOf(const std::string& path, const std::string& full) const;
  bool MakeAnotherName(const std::string& path, const std::string& equal_to);
  void Fail(int error, const std::string& doing);
  std::string root_, error_;
  std::unordered_set<std::string> folders_;  // created by this builder, or found to exist
  std::unordered_map<std::string, std::string> first_with_;  // content of a file or target of a
                                                             // link → the first path that has it
  bool can_make_devices_ = true, has_made_device_ = false;
};

}  // namespace penstock::sim
