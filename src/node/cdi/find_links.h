// The names by which programs load libraries, as links that containers need.
#pragma once

#include <string>
#include <vector>

#include "device/container.h"
#include "node/cdi/find_tree.h"

namespace penstock::node::cdi {

/// Something that containers get at a path, and where the host has it.
struct FoundFile {
  std::string path;
  std::string host_path;
  bool operator==(const FoundFile&) const = default;
};

/// A link in containers.
struct FoundLink {
  std::string path;
  std::string target;  ///< as the link says it
  auto operator<=>(const FoundLink&) const = default;
};

/// Links beside libraries: their SONAME, whether or not the root has it (of two libraries of one SONAME to the one that the root's leads
/// to); their short name ("libcuda.so") where the root has it; and those
/// that a dialect says.
class Links {
 public:
  /// The folders are those in which libraries were looked for.
  Links(const DriverTree& tree, const std::vector<DriverTree::Folder>& folders, std::vector<device::DriverLink> wanted)
      : tree_(tree), folders_(folders), wanted_(std::move(wanted)) {}

  void Add(const FoundFile& library, const std::string& soname);

  /// Sorted by path, one for each.
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

/// The last part of a path, all before it ("/" for the first), and the two together again.
std::string_view NameOf(std::string_view path);
std::string FolderOf(const std::string& path);
std::string Below(const std::string& folder, std::string_view name);

}  // namespace penstock::node::cdi
