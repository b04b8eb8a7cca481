// Collects the links by which programs load libraries and which containers therefore need.
#pragma once

#include <string>
#include <vector>

#include "device/container.h"
#include "node/cdi/find_tree.h"

namespace penstock::node::cdi {

/// A file that containers get at a path, and its path on the host.
struct FoundFile {
  std::string path;
  std::string host_path;
  bool operator==(const FoundFile&) const = default;
};

/// A link in containers.
struct FoundLink {
  std::string path;
  std::string target;  ///< as stored in the link
  auto operator<=>(const FoundLink&) const = default;
};

/// Links beside libraries: their SONAME, whether or not the root has it (where two libraries have
/// the same SONAME, to the one that the root's link leads to); their short name ("libcuda.so")
/// where the root has it; and those that a dialect requests.
class LibraryLinks {
 public:
  /// `folders` are those in which libraries were searched.
  LibraryLinks(const DriverTree& tree, const std::vector<DriverTree::Folder>& folders,
               std::vector<device::DriverLink> wanted)
      : tree_(tree), folders_(folders), wanted_(std::move(wanted)) {}

  void Add(const FoundFile& library, const std::string& soname);

  /// Sorted by path, one for each path.
  std::vector<FoundLink> Take();

 private:
  void AddWanted(const FoundFile& library, const std::string& soname);
  void AddDeeper(const FoundFile& library, const device::DriverLink& link);
  bool LeadsTo(const std::string& path, const FoundFile& library) const;

  const DriverTree& tree_;
  const std::vector<DriverTree::Folder>& folders_;
  const std::vector<device::DriverLink> wanted_;
  struct Entry {
    FoundLink link;
    bool as_in_root = false;
  };
  std::vector<Entry> links_;
};

/// The last part of a path, everything before it ("/" for the first), and the two joined again.
std::string_view NameOf(std::string_view path);
std::string FolderOf(const std::string& path);
std::string Below(const std::string& folder, std::string_view name);

}  // namespace penstock::node::cdi
