// Makes files, folders, links and device nodes below one folder; what they are for is said by those who use it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/core/result.h"

namespace penstock::sim {

/// Gathers the first failure, so that building reads as a list of what there is; once something failed the rest is tried all the same.
/// Paths are relative to the root. Not thread-safe.
///
/// A machine has hundreds of small files, many with the same content, and a file system is slow at making new ones: equal read-only files
/// and equal links that one builder makes are names of one. What is there already as it should be is left alone, and what is not is
/// replaced in one step: a real machine's files do not go away for a moment because something else changes.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::string root) : root_(std::move(root)) {}

  std::string Path(const std::string& path) const { return root_ + "/" + path; }
  bool Exists(const std::string& path) const;

  /// A file that ends in a line's end, instead of whatever has that name.
  void File(const std::string& path, std::string_view content, unsigned mode = 0444);
  void Bytes(const std::string& path, const std::string& content, unsigned mode);
  void Folder(const std::string& path);
  void Link(const std::string& path, const std::string& target);
  /// A new file beside the old one and then in its place: a process that has the old one mapped keeps it whole. `edit` changes the copy
  /// before it gets its name.
  void Copy(
      const std::string& from, const std::string& path,
      const std::function<base::Status(const std::string&)>& edit = [](const std::string&) { return base::Status(); });
  /// A second name for a file of this tree.
  void HardLink(const std::string& from, const std::string& path);
  /// A second name for a file outside, or a copy where that cannot be: for files that nobody writes.
  void Borrow(const std::string& from, const std::string& path);
  /// A character device; where the kernel refuses to make one here, or to open it, an empty file of the same name. The first one should
  /// be one that everybody may open.
  void Device(const std::string& path, unsigned major_number, unsigned minor_number, unsigned mode = 0666);
  /// The file of a socket that nobody listens at.
  void Socket(const std::string& path);
  /// Whatever is there, with all below it; nothing is fine.
  void Remove(const std::string& path);

  bool can_make_devices() const { return can_make_devices_; }
  base::Status status() const { return error_.empty() ? base::Status() : base::Status(base::Error(base::Code::kUnavailable, error_)); }

 private:
  bool Replace(const std::string& path, const std::function<bool(const std::string& next)>& make);
  bool HasFile(const std::string& path, std::string_view content, unsigned mode) const;
  bool HasLink(const std::string& path, const std::string& target) const;
  bool IsNameOf(const std::string& path, const std::string& full) const;
  bool MakeAnotherName(const std::string& path, const std::string& equal_to);
  void Fail(int error, const std::string& doing);
  std::string root_, error_;
  std::unordered_set<std::string> folders_;                  // made by this builder, or there when it looked
  std::unordered_map<std::string, std::string> first_with_;  // what is in a file or link, and the first path that had it
  bool can_make_devices_ = true, has_made_device_ = false;
};

}  // namespace penstock::sim
